"""`hermesctl chat` in a real terminal, with the real service and a scripted model: what a person sees."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import Accepted, Done, Queue, Submit
from tests.fake_model import FakeModel
from tests.hermesctl.hand import ROOT, environment, hermesctl
from tests.hermesctl.terminal import Terminal, hermesctl_in
from tests.service import Service, settings_for

ANSWER = """\
## Two ways

Use `ls`, or **write** it:

```python
print("hello")
```

1. first
2. second

| name | age |
| --- | --- |
| Ada | 36 |
"""


@pytest.fixture(autouse=True)
def model(model_server: FakeModel) -> FakeModel:
    model_server.reset()
    return model_server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    """One for all tests here, each with sessions of its own."""
    settings = settings_for(model_server, workers="count = 3")
    with Service(tmp_path_factory.mktemp("chat") / "home", settings) as service:
        yield service


def chat(service: Service, session: str, **options: object) -> Terminal:
    terminal = hermesctl_in(service.home, "chat", session, **options)  # type: ignore[arg-type]
    terminal.shows("say something", "when busy")
    return terminal


def calling(name: str, text: str = "Done.", **arguments: object) -> str:
    calls = json.dumps([{"name": name, "arguments": arguments}])
    return f"[[tools calls={shlex.quote(calls)} text={shlex.quote(text)}]]"


def slow(count: int = 200, interval: float = 0.05) -> str:
    return f"[[slow count={count} interval={interval}]]"


def turns(service: Service, session: str) -> list[str]:
    return [row["state"] for row in service.show("turns", session=session)]


def test_an_answer_is_streamed_and_its_markdown_is_shown(service: Service, model: FakeModel) -> None:
    with chat(service, "markdown", rows=40) as terminal:
        terminal.say(f"{slow(count=60)} stream")
        streaming = terminal.shows("word5", "Esc interrupts")
        assert "word59" not in streaming
        terminal.shows("word59", "tokens")
        model.set_mode("normal", text=ANSWER)
        terminal.say("show me")
        screen = terminal.shows("Ada").split("❯ show me")[1]
        for line in (
            "\nTwo ways\n",
            "\nUse ls, or write it:\n",
            '\n  print("hello")\n',
            " 1 first",
            " name  age",
        ):
            assert line in screen


def test_escape_ends_a_tool_with_all_it_has_started_and_shows_the_proof(service: Service) -> None:
    with chat(service, "proof") as terminal:
        terminal.say(calling("shell", command="sleep 77 & sleep 78"))
        terminal.shows("· shell  sleep 77 & sleep 78", "shell is running", "Esc interrupts")
        terminal.press("escape")
        terminal.type("hello")
        screen = terminal.shows("processes ended in", "none left")
        assert re.search(r"■ cut off .* · [3-9] processes ended in [\d.]+ ms, none left \(\w+\)", screen)
        assert "■ shell  sleep 77 & sleep 78  stopped" in screen
        assert "Esc interrupts" not in screen
        terminal.shows("❯ hello")


def test_the_whole_output_of_a_failed_command_can_be_unfolded(service: Service) -> None:
    with chat(service, "output", rows=60) as terminal:
        terminal.say(calling("shell", command="seq -f row-%03g 40; exit 3"))
        screen = terminal.shows("✘ shell  seq -f row-%03g 40; exit 3  exit 3 · ", "Done.")
        assert "row-001" not in screen
        terminal.press("ctrl-o")
        screen = terminal.shows("│ [exit status 3]", "│ row-001", "│ row-040", "unfolded")
        assert [f"│ row-{number:03}" in screen for number in range(1, 41)] == [True] * 40
        terminal.press("ctrl-o")
        terminal.becomes(lambda screen: "row-001" not in screen)


def test_what_is_typed_while_busy_follows_the_busy_mode(service: Service) -> None:
    with chat(service, "busy") as terminal:
        terminal.say(f"{slow()} the first")
        terminal.shows("word3", "a message interrupts what runs")
        terminal.say("the second")
        terminal.shows("cut off", "You said: the second")
        terminal.say("/busy queue")
        terminal.shows("queue when busy")
        terminal.say(f"{slow()} the third")
        terminal.shows("word3")
        terminal.say("the fourth")
        terminal.shows("1 the fourth  accepted, waits", "1 waiting", "a message waits its turn")
        terminal.press("ctrl-c")
        terminal.shows("held · /queue resume", "1 held")
        terminal.say("/queue resume")
        terminal.shows("You said: the fourth", "tokens")
        assert turns(service, "busy") == ["done", "interrupted", "done", "interrupted"]


def test_a_question_is_answered_where_it_is_asked(service: Service) -> None:
    with chat(service, "question") as terminal:
        terminal.say(calling("ask", "Painted.", question="Which colour?", choices=["red", "blue"]))
        terminal.shows("? Which colour?", "1  red", "2  blue", "answer with a number", "your answer")
        terminal.say("2")
        # The scripted model asks again as often as it is asked; the first answer is what counts here.
        terminal.shows("❯ blue")
    (answered, *_) = [e for e in _events(service, "question") if e["type"] == "question.answered"]
    assert answered["text"] == "blue"


def _events(service: Service, session: str) -> list[dict[str, object]]:
    listener = service.listen(session)
    listener.until(lambda: "question.answered" in listener.types())
    return [{"type": event.type, **event.fields} for event in listener.events]


def test_a_killed_supervisor_costs_no_line_and_repeats_none(tmp_path: Path, model: FakeModel) -> None:
    settings = settings_for(model, workers="count = 1")
    with Service(tmp_path / "home", settings) as service, chat(service, "demo") as terminal:
        terminal.say("before")
        terminal.shows("You said: before", "tokens")
        terminal.say("/busy queue")
        # Whether the first words are in the journal by then or not: the next attempt goes on behind what is.
        terminal.say("[[goon count=30 interval=0.1]] in the middle")
        terminal.shows("word3")
        service.kill()
        terminal.shows("away", "goes on when the supervisor is back")
        terminal.say("typed meanwhile")
        terminal.shows("↑ typed meanwhile  sending")
        service.start()
        screen = terminal.shows("word29", "You said: typed meanwhile", "4 tokens")
        for once in ("word3 ", "word29", "You said: before", "❯ typed meanwhile", "1 attempt lost"):
            assert screen.count(once) == 1, (once, screen)
        assert turns(service, "demo") == ["done", "done", "done"]


def test_other_sessions_are_switched_to_and_their_news_is_marked(service: Service) -> None:
    service.say("aside", "hello")
    with chat(service, "here") as terminal:
        terminal.say("mine")
        terminal.shows("You said: mine")
        terminal.say("/session aside")
        terminal.shows("You said: hello", "\naside · ")
        assert "You said: mine" not in terminal.screen
        terminal.say("/sessions")
        terminal.shows("❯  aside", "here")
        terminal.say("/session here")
        terminal.shows("You said: mine", "\nhere · ")
        service.say("aside", "news")
        terminal.shows("• aside")
        terminal.press("ctrl-t")
        screen = terminal.shows("You said: news")
        assert screen.count("You said: hello") == 1


def test_a_hostile_answer_cannot_command_the_terminal(service: Service, model: FakeModel) -> None:
    hostile = "\x1b]0;owned\x07 \x1b[31;1;5m\x9b5m `\x1b[5;7m` [x](http://e\x1b[5mvil) <b>end</b>"
    model.set_mode("normal", text=hostile)
    with chat(service, "hostile") as terminal:
        service.say("hostile", f"said: {hostile}")
        screen = terminal.shows("said: �]0;owned", "<b>end</b>", "tokens")
        assert screen.count("owned") == 2
        for sign in (b"\x1b]0;", b"\x1b[31;1;5m", b"\xc2\x9b", b"\x1b[5;7m", b"\x1b[5m", b"\x07"):
            assert sign not in terminal.raw


def test_a_small_terminal_and_one_without_colour_are_enough(service: Service, model: FakeModel) -> None:
    model.set_mode("normal", text="A long line of an answer that is wrapped because sixty columns are few.")
    with chat(service, "small", columns=60, rows=20, NO_COLOR="1") as terminal:
        terminal.say("and?")
        screen = terminal.shows("are few.", "tokens")
        assert max(map(len, screen.splitlines())) <= 60
        assert not re.search(rb"\x1b\[[\d;]*(3[0-7]|9[0-7]|[34]8;5)[;m]", terminal.raw)
        terminal.resize(100, 30)
        terminal.becomes(lambda screen: "─" * 100 in screen)


def test_lines_typed_before_come_back_and_are_found(service: Service) -> None:
    with chat(service, "typed") as terminal:
        terminal.say("the capital of France")
        terminal.shows("You said: the capital of France")
        terminal.say("another")
        terminal.shows("You said: another")
        terminal.press("up", "up")
        terminal.shows("\n❯ the capital of France\ntyped ·")
        terminal.press("down", "down")
        terminal.press("ctrl-r")
        terminal.type("capit")
        terminal.shows("\n❯ the capital of France\nsearch: capit")
        terminal.press("enter", "ctrl-c", "ctrl-c")
        assert terminal.ends() == 0
    with chat(service, "typed-later") as terminal:
        terminal.press("up")
        terminal.shows("\n❯ another\n")
        terminal.press("ctrl-c")
        terminal.shows("nothing runs; Ctrl-C again leaves")
        terminal.type("two")
        terminal.press("alt-enter")
        terminal.type("lines")
        terminal.press("ctrl-j")
        terminal.type("more")
        terminal.shows("❯ two\n  lines\n  more\n")
        terminal.press("enter")
        terminal.shows("You said: two", "lines")
        terminal.press("ctrl-d")
        assert terminal.ends() == 0
    history = service.home / "chat.history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert json.loads(history.read_bytes().splitlines()[-1]) == "two\nlines\nmore"


def test_commands_are_completed_and_wrong_ones_explained(service: Service) -> None:
    with chat(service, "commands") as terminal:
        terminal.type("/que")
        terminal.shows("/queue", "what waits behind the running turn")
        terminal.press("tab", "enter")
        terminal.shows("nothing waits")
        terminal.say("/bsy queue")
        terminal.shows("there is no command /bsy", "did you mean /busy")
        terminal.press("ctrl-c")
        terminal.say("//etc is a folder")
        terminal.shows("You said: /etc is a folder")
        terminal.say("/why")
        terminal.shows("turn commands/1 opened to answer", "is done")
        terminal.say("/status")
        terminal.shows("workers", "seats")


def test_a_failed_turn_says_why_and_is_tried_again(service: Service) -> None:
    with chat(service, "failing") as terminal:
        terminal.say("[[401 times=1]] please")
        terminal.shows("✘ failed", "hint:")
        terminal.say("/retry")
        terminal.shows("You said: [[401 times=1]] please", "tokens")


def test_tools_are_folded_to_a_line_and_unfolded_by_a_key(service: Service) -> None:
    command = "echo " + "long " * 30
    with chat(service, "folded", columns=60) as terminal:
        terminal.say(calling("shell", command=command))
        screen = terminal.shows("✔ shell  echo long", " ms", "Done.")
        assert re.search(r"\n  ✔ shell  echo (long )+\S*…  [\d,]+ ms\n", screen)
        terminal.press("ctrl-o")
        terminal.shows("unfolded", "    echo long long")
        terminal.press("ctrl-o")
        terminal.becomes(lambda screen: "unfolded" not in screen)


def test_what_was_said_before_is_there_and_older_on_demand(service: Service, model: FakeModel) -> None:
    """Many messages that were taken back make a long feed in a moment."""
    service.say("long", "the very first")
    listener = service.listen("long")
    listener.ending("long/1")
    service.say("long", slow(count=100_000))
    listener.until(lambda: listener.types().count("attempt.opened") == 2)
    client = service.client()
    for number in range(300):
        client.ask(Submit("long", f"number {number}", f"key{number}", "queue"), Accepted)
    client.ask(Queue("long", "clear"), Done)
    with hermesctl_in(service.home, "chat", "long", rows=40) as terminal:
        terminal.shows("taken back: number 299")
        terminal.becomes(lambda screen: _read_back(terminal, screen), "the very first")
        terminal.press("ctrl-end")
        terminal.shows("taken back: number 299", "Esc interrupts", "/help")
        terminal.press("wheel-up", "wheel-up")
        terminal.shows("↓ Ctrl-End: newest")
        terminal.press("ctrl-end", "escape")
        terminal.becomes(lambda screen: "Esc interrupts" not in screen)


def _read_back(terminal: Terminal, screen: str) -> bool:
    if "You said: the very first" in screen:
        return True
    terminal.press("page-up")
    return False


def test_without_a_terminal_it_names_the_way_out(service: Service) -> None:
    result = hermesctl(service.home, "chat", "demo")
    assert result.code == 2
    assert "a chat needs a terminal" in result.err
    assert "hermesctl send" in result.err


def test_without_a_supervisor_it_says_so(tmp_path: Path) -> None:
    with hermesctl_in(tmp_path, "chat", "demo") as terminal:
        assert terminal.ends() == 69
        assert "the supervisor is not running" in terminal.screen


def test_other_commands_do_not_pay_for_the_chat(tmp_path: Path) -> None:
    line = [sys.executable, "-X", "importtime", "-m", "hermesctl", "--home", str(tmp_path), "status"]
    imported = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=environment()).stderr
    assert "hermesctl.show_rows" in imported
    for module in ("prompt_toolkit", "rich", "markdown_it", "asyncio", "hermesctl.chat"):
        assert not re.search(rf"\| +{module}$", imported, re.MULTILINE)
