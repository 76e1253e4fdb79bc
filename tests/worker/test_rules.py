"""Rules about tool calls: which calls are allowed, asked about and denied, and the parts of a line."""

import os
from pathlib import Path
from typing import Any

import pytest

from worker.command_lines import split
from worker.errors import AgentError
from worker.host_danger import danger
from worker.rules import Rules

GIT = Rules(allow=["shell(git *)", "shell(ls)", "shell(ls *)", "shell(wc *)"], otherwise="ask")


def shell(command: str, **others: Any) -> dict[str, Any]:
    return {"command": command, **others}


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status; git log | wc -l && ls",
        "git log 2>&1 | wc -l > /dev/null",
        "git log &>/dev/null",
        "git commit -m 'a; rm -rf x'",
        'git commit -m "one & two"',
        "git status &\ngit log\n",
    ],
)
def test_a_line_is_allowed_when_each_of_its_commands_is(command: str) -> None:
    assert GIT.decide("shell", shell(command)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "git status; rm x",
        "git status && rm x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git log $(rm x)",
        "git log `rm x`",
        'git log "$(rm x)"',
        "git log > x",
        "git log >> x",
        "git log 2> x",
        "git log &> x",
        "git log >/dev/null/../../x",
        "git log >| x",
        "git log < x",
        "git diff <(rm x)",
        "git log ${x@P}",
        "git log $'\\x3b'",
        "(git log)",
        "{ git log; }",
        "git log \\; rm x",
        "git log 'open",
        'git log "open',
        "PAGER=x git log",
        "if git log; then git log; fi",
        "! git log",
        "git log # comment",
        "$GIT log",
        "g?t log",
        "'git' log",
        "git log\rrm x",
        "git log \x00",
        "",
        ";",
    ],
)
def test_a_line_is_not_allowed_by_a_pattern_when_a_part_is_not_or_is_uncertain(command: str) -> None:
    expected = "ask" if command else "allow"  # without a command nothing begins
    assert GIT.decide("shell", shell(command)) == expected
    if command:
        assert Rules(allow=["shell(git *)"], otherwise="deny").decide("shell", shell(command)) == "deny"


def test_the_bare_tool_allows_every_line() -> None:
    assert Rules(allow=["shell"], otherwise="ask").decide("shell", shell("x=$(date) > y")) == "allow"


def test_deny_comes_before_ask_and_ask_before_allow() -> None:
    rules = Rules(allow=["shell"], ask=["shell(git push*)"], deny=["shell(git push --force*)"])
    assert rules.decide("shell", shell("git log")) == "allow"
    assert rules.decide("shell", shell("git push")) == "ask"
    assert rules.decide("shell", shell("git push --force")) == "deny"


@pytest.mark.parametrize("word", ["allow", "ask", "deny"])
def test_otherwise_decides_about_the_rest(word: Any) -> None:
    assert Rules(otherwise=word).decide("shell", shell("true")) == word
    assert Rules(otherwise=word).decide("time__now", {}) == word


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("curl x", "deny"),
        ("true; curl x", "deny"),
        ("true | 'curl' x", "ask"),
        ("echo 'a' | curl 'x'", "deny"),
        ("$(curl x)", "ask"),
        ("c\\url x", "ask"),
        ("env curl x", "ask"),
        ("sh -c 'curl x'", "ask"),
        ("cat curl", "allow"),
    ],
)
def test_a_denied_command_is_found_in_any_part_and_what_may_hide_one_asks(
    command: str, decision: str
) -> None:
    assert Rules(deny=["shell(curl *)"]).decide("shell", shell(command)) == decision


@pytest.mark.parametrize(
    ("path", "decision"),
    [
        ("src/a.py", "allow"),
        ("./src/a.py", "allow"),
        ("src/../secret", "ask"),
        ("secret", "ask"),
        ("src/private/a", "deny"),
        ("./src//private/a", "deny"),
        ("x/../src/private/a", "deny"),
        ("~/src/a.py", "ask"),
    ],
)
def test_a_path_is_compared_without_its_detours(path: str, decision: str) -> None:
    rules = Rules(allow=["write(src/*)"], deny=["write(src/private/*)"], otherwise="ask")
    assert rules.decide("write", {"path": path, "content": "x"}) == decision


@pytest.mark.parametrize("path", ["x/../notes/a", "notes/../notes/a", "~/notes/a", "~other/notes/a"])
def test_a_path_that_leads_through_other_folders_is_allowed_by_no_pattern(path: str) -> None:
    """A part of it may be a link; only the kernel knows where it ends."""
    rules = Rules(allow=["read_file(notes/*)", "read_file(~*)"], otherwise="ask")
    assert rules.decide("read_file", {"path": path}) == "ask"
    assert rules.decide("read_file", {"path": "./notes//a"}) == "allow"
    assert Rules(allow=["read_file"], otherwise="ask").decide("read_file", {"path": path}) == "allow"


def test_a_call_with_two_paths_is_allowed_by_no_pattern() -> None:
    """Which of them its tool uses is not known."""
    rules = Rules(allow=["read(notes/*)"], deny=["read(/etc/*)"], otherwise="allow")
    assert rules.decide("read", {"path": "notes/a"}) == "allow"
    for other in ("file_path", "filePath"):
        assert rules.decide("read", {"path": "notes/a", other: "/etc/passwd"}) == "ask"
    careful = Rules(allow=["read(notes/*)"], otherwise="deny")
    assert careful.decide("read", {"path": "notes/a", "file_path": "/etc/passwd"}) == "deny"


def test_a_denied_absolute_path_is_found_in_a_relative_one(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    rules = Rules(deny=[f"read({tmp_path}/keys/*)"])
    assert rules.decide("read", {"path": "keys/a"}) == "deny"
    assert rules.decide("read", {"path": "~/keys/a"}) == "deny"
    assert rules.decide("read", {"path": "other/a"}) == "allow"


def test_addresses_and_other_arguments_are_compared_too() -> None:
    rules = Rules(
        allow=["fetch(https://example.org/*)", "time__*"],
        deny=["*__delete", "db__run(*DROP*)"],
        otherwise="ask",
    )
    assert rules.decide("fetch", {"url": "https://example.org/x"}) == "allow"
    assert rules.decide("fetch", {"url": "https://example.org.evil/x"}) == "ask"
    assert Rules(deny=["fetch(*://evil.org/*)"]).decide("fetch", {"url": "HTTP://EVIL.org/"}) == "deny"
    assert rules.decide("time__now", {"zone": "UTC"}) == "allow"
    assert rules.decide("files__delete", {}) == "deny"
    assert rules.decide("db__run", {"sql": "DROP TABLE x"}) == "deny"
    assert rules.decide("db__run", {"sql": "SELECT 1"}) == "ask"


def test_calls_that_begin_nothing_are_not_asked_about() -> None:
    rules = Rules(ask=["*"], otherwise="ask")
    assert rules.decide("ask", {"question": "Which?"}) == "allow"
    assert rules.decide("shell", {"action": "read", "id": "1"}) == "allow"
    assert rules.decide("shell", {"action": "start", "command": "x"}) == "ask"
    assert Rules(deny=["ask"]).decide("ask", {"question": "Which?"}) == "deny"


def test_what_is_no_rule_is_not_passed_over() -> None:
    with pytest.raises(AgentError, match="is no rule"):
        Rules(deny=["shell(rm *"])


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -fr / --no-preserve-root",
        "sudo rm -r -f /*",
        "true && rm --recursive ~",
        "rm -rf ~/",
        "rm -rf $HOME",
        'rm -rf "${HOME}"/*',
        "rm -rf /tmp/..",
        "echo $(rm -rf /)",
        "bash -c 'rm -rf /'",
        "dd if=/dev/zero of=/dev/sda",
        "cat x > /dev/nvme0n1",
        "cat x | tee /dev/vda1",
        "cp x /dev/mapper/root",
        "mkfs.ext4 image",
        "/sbin/mkfs -t ext4 x",
        "wipefs -a x",
        "shutdown -h now",
        "sudo systemctl poweroff",
        "init 0",
        "reboot",
    ],
)
def test_what_endangers_the_host_is_denied_before_all_rules(command: str) -> None:
    assert danger("shell", shell(command))
    assert Rules(allow=["shell", "*"]).decide("shell", shell(command)) == "deny"
    assert Rules(allow=["*"]).decide("execute", shell(command)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "rm -rf ~/build",
        "rm -rf ~/{a,b}",
        "rm -rf /tmp/x",
        "rm /",
        "dd if=/dev/sda of=image",
        "echo shutdown",
        "git commit -m 'reboot'",
        "ls /dev/sda",
        "cat x > /dev/null",
        "systemctl status",
    ],
)
def test_what_is_like_it_is_left_to_the_rules(command: str) -> None:
    assert danger("shell", shell(command)) == ""


def test_a_folder_and_a_device_of_other_arguments_count() -> None:
    assert danger("shell", shell("rm -rf *", folder="/"))
    assert danger("shell", shell("rm -rf .", folder=os.path.expanduser("~")))
    assert danger("write", {"path": "/dev/sdb", "content": ""})
    assert danger("read", {"path": "/dev/sdb"}) == ""


def test_a_command_of_words_is_a_line_and_one_that_is_not_known_asks() -> None:
    rules = Rules(allow=["execute(git *)"], deny=["execute(curl *)"])
    assert rules.decide("execute", {"command": ["curl", "x"]}) == "deny"
    assert rules.decide("execute", {"command": ["bash", "-lc", "curl x"]}) == "ask"
    assert rules.decide("execute", {"command": ["bash", "-lc", "rm -rf /"]}) == "deny"
    assert rules.decide("execute", {"title": "curl x"}) == "ask"
    assert Rules(allow=["execute(*)"], otherwise="ask").decide("execute", {"title": "git x"}) == "ask"


def test_the_commands_of_a_line_are_given_as_written_and_without_quotes() -> None:
    line = split("git commit -m 'a b' && ls")
    assert line is not None
    assert line.commands == ("git commit -m 'a b'", "ls")
    assert line.unquoted == ("git commit -m a b", "ls")
    assert not line.has_runner


def test_a_pattern_sees_the_arguments_of_any_tool_as_they_were_written() -> None:
    rules = Rules(deny=["notes__put(*schlüssel*)"])
    assert rules.decide("notes__put", {"text": "der schlüssel"}) == "deny"
    assert rules.decide("notes__put", {"text": "das schloss"}) == "allow"


def test_the_rules_are_among_the_options_of_an_agent_and_each_may_be_missing() -> None:
    given = {"deny": ["write"], "ask": ["read"], "otherwise": "deny", "system": "Be brief."}
    rules = Rules.of(given)
    decisions = [rules.decide(tool, {"path": "x"}) for tool in ("write", "read", "edit")]
    assert decisions == ["deny", "ask", "deny"]
    assert Rules.of({}).decide("write", {"path": "x"}) == "allow"
