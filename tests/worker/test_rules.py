"""Rules about tool calls: which calls are allowed, asked about and denied, and the parts of a line."""

from pathlib import Path
from typing import Any

import pytest

from worker.command_lines import line_of, split
from worker.errors import AgentError
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
        ("/usr/bin/env curl x", "ask"),
        *(
            (f"{runner} curl x", "ask")
            for runner in (
                ".",
                "bash",
                "builtin",
                "busybox",
                "command",
                "dash",
                "doas",
                "env",
                "eval",
                "exec",
                "find",
                "ionice",
                "nice",
                "nohup",
                "setsid",
                "sh",
                "source",
                "stdbuf",
                "sudo",
                "timeout",
                "xargs",
                "zsh",
            )
        ),
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


def test_what_may_hide_a_command_that_must_be_asked_about_asks() -> None:
    rules = Rules(ask=["shell(curl *)"])
    assert rules.decide("shell", shell("$(curl x)")) == "ask"
    assert rules.decide("shell", shell("env curl x")) == "ask"
    assert rules.decide("shell", shell("ls x")) == "allow"


def test_a_denied_command_is_found_without_its_quotes_and_across_the_line() -> None:
    rules = Rules(deny=["shell(git push --force*)", "shell(*| sh)"])
    assert rules.decide("shell", shell("git push '--force'")) == "deny"
    assert rules.decide("shell", shell("cat x | sh")) == "deny"


@pytest.mark.parametrize("tool", ["shell", "execute", "terminal"])
def test_each_tool_that_runs_commands_has_its_line_split(tool: str) -> None:
    rules = Rules(allow=[f"{tool}(git *)"], otherwise="deny")
    assert rules.decide(tool, shell("git log")) == "allow"
    assert rules.decide(tool, shell("git log; rm x")) == "deny"


@pytest.mark.parametrize("tool", ["read", "write", "edit", "delete", "read_file", "write_file", "patch"])
@pytest.mark.parametrize("name", ["path", "file_path", "filePath"])
def test_each_tool_of_files_has_its_path_compared(tool: str, name: str) -> None:
    rules = Rules(allow=[f"{tool}(src/*)"], deny=[f"{tool}(src/keys/*)"], otherwise="ask")
    assert rules.decide(tool, {name: "src/a", "content": "x"}) == "allow"
    assert rules.decide(tool, {name: "src/../a", "content": "x"}) == "ask"
    assert rules.decide(tool, {name: "./src/keys/a", "content": "x"}) == "deny"


def test_a_denied_address_is_found_with_spaces_around_it_and_in_one_that_is_none() -> None:
    rules = Rules(deny=["fetch(http://evil.org/x)", "fetch(*evil.com*)"])
    assert rules.decide("fetch", {"url": " http://EVIL.org/x "}) == "deny"
    assert rules.decide("fetch", {"url": "http://[evil.com"}) == "deny"
    assert rules.decide("fetch", {"url": "http://[good.com"}) == "allow"


@pytest.mark.parametrize("words", ["allow", "ask", "deny"])
def test_a_rule_about_a_tool_that_does_not_exist_is_named(words: str) -> None:
    rules = Rules(**{words: ["shell(git *)", "time__*", "sehll"]})  # type: ignore[arg-type]
    assert rules.without_tool(["shell", "time__now"]) == "sehll"
    assert rules.without_tool(["shell", "time__now", "sehll"]) == ""


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git log a#b", ("git log a#b",)),
        ("git log v2>/dev/null", ("git log v2",)),
        ("git>/dev/null log", ("git log",)),
        ("git log 2>/dev/null", ("git log",)),
        ("git\tlog", ("git log",)),
    ],
)
def test_words_end_where_bash_ends_them(line: str, commands: tuple[str, ...]) -> None:
    found = split(line)
    assert found is not None
    assert found.unquoted == commands


@pytest.mark.parametrize("line", ['git log "a\\nb"', 'git log "$x"', 'git log "`x`"'])
def test_what_bash_expands_within_quotes_is_not_certain(line: str) -> None:
    assert split(line) is None


def test_a_list_is_a_line_only_when_all_of_it_are_words() -> None:
    assert line_of(["git", "log", "a b"]) == "git log 'a b'"
    assert line_of(["git", 1]) is None
    assert line_of([]) is None
    assert Rules(deny=["execute(curl *)"]).decide("execute", {"command": ["curl", 1]}) == "ask"
