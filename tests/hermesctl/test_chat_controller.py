"""What a person does at the chat becomes requests, and what comes back, words. No terminal, no socket."""

from pathlib import Path
from typing import Any

import pytest

from hermesctl.chat import slash_commands
from hermesctl.chat.connection import Answered, Connected, Disconnected, Received
from hermesctl.chat.controller import OUTGOING_MAX, Controller, Then, Work
from hermesctl.chat.drawing import Look, item_lines
from hermesctl.chat.input_history import LINE_BYTES_MAX, LINES_MAX, PrivateHistory
from hermesctl.chat.keys import KEYS
from hermesctl.chat.session_log import SessionLog
from hermesctl.chat.slash_commands import COMMANDS
from hermesctl.chat.turn import Turn
from hermesctl.errors import CommandError
from ipc.messages import (
    Accepted,
    Answer,
    Done,
    Interrupt,
    Queue,
    Refused,
    Request,
    Respond,
    Retry,
    Show,
    Submit,
    Table,
)
from ipc.places import find_places
from tests.hermesctl.peer import Story


class Bench:
    """A controller whose requests are kept here, to be answered by hand."""

    def __init__(self, home: Path) -> None:
        self.posted: list[tuple[int, Request]] = []
        self.followed: list[tuple[str, int | None]] = []
        self.controller = Controller(
            find_places(str(home)), "demo", self, self._run_apart, slash_commands.run
        )
        self.story = Story()

    def post(self, ticket: int, request: Request) -> None:
        self.posted.append((ticket, request))

    def subscribe(self, session: str, after: int | None) -> None:
        self.followed.append((session, after))

    def last(self, kind: type) -> Any:
        return [request for _, request in self.posted if isinstance(request, kind)][-1]

    def answers(self, answer: Answer) -> None:
        """To the request that was posted last."""
        self.controller.handle(Answered(self.posted[-1][0], answer))

    def happens(self, type: str, **fields: Any) -> None:
        self.controller.handle(Received(self.story.event(type, **fields)))

    def runs(self) -> None:
        self.happens("message.accepted", message="m_1", text="hello", kind="text", busy="interrupt")
        self.happens("turn.opened", turn="demo/1", messages=["m_1"])
        self.happens("attempt.opened", turn="demo/1", attempt=1, worker=0, pid=7)

    @property
    def notice(self) -> str:
        return "\n".join(self.controller.notice.lines) if self.controller.notice else ""

    def _run_apart(self, work: Work, then: Then) -> None:
        try:
            then(work())
        except CommandError as error:
            then(error)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_message_is_sending_then_accepted_then_in_the_feed(bench: Bench) -> None:
    assert bench.controller.enter("hello")
    (outgoing,) = bench.controller.current.outgoing
    assert (outgoing.text, outgoing.state) == ("hello", "sending")
    bench.answers(Accepted("m_1", 1))
    assert [each.state for each in bench.controller.current.outgoing] == ["accepted"]
    bench.runs()
    assert bench.controller.current.outgoing == []


def test_a_refused_message_says_why(bench: Bench) -> None:
    bench.controller.enter("hello")
    bench.answers(Refused("the queue is full", "wait"))
    assert bench.controller.current.outgoing == []
    assert "“hello” was not taken: the queue is full\nhint: wait" in bench.notice


def test_messages_on_their_way_are_bounded(bench: Bench) -> None:
    assert all(bench.controller.enter("x") for _ in range(OUTGOING_MAX))
    assert not bench.controller.enter("one too many")
    assert "on their way" in bench.notice


def test_what_is_typed_at_a_question_answers_it(bench: Bench) -> None:
    bench.runs()
    fields = {"turn": "demo/1", "question": "demo/1#1", "kind": "clarify", "choices": ["red", "blue"]}
    bench.happens("question.asked", **fields, text="Which?")
    bench.controller.enter("2")
    assert bench.last(Respond) == Respond("demo/1#1", "blue", "hermesctl")
    bench.controller.handle(Disconnected())
    assert not bench.controller.enter("1")
    assert "answer when it is back" in bench.notice


def test_an_interrupt_names_its_turn_and_is_asked_once(bench: Bench) -> None:
    assert not bench.controller.interrupt()
    bench.runs()
    assert bench.controller.interrupt()
    assert not bench.controller.interrupt()
    asked = [request for _, request in bench.posted if isinstance(request, Interrupt)]
    assert asked == [Interrupt("demo", "hermesctl", "demo/1")]
    bench.answers(Done(note="demo/1 was done before"))
    assert "done before" in bench.notice
    assert bench.controller.current.interrupting == ""


def test_a_person_may_interrupt_again_what_is_being_interrupted(bench: Bench) -> None:
    bench.runs()
    assert bench.controller.interrupt()
    assert bench.controller.interrupt(again=True)
    asked = [request for _, request in bench.posted if isinstance(request, Interrupt)]
    assert asked == [Interrupt("demo", "hermesctl", "demo/1")] * 2


@pytest.mark.parametrize(
    ("line", "request_", "says"),
    [
        ("/interrupt drop", Interrupt("demo", "hermesctl", "demo/1", drop=True), ""),
        ("/queue drop 1", Queue("demo", "drop", "m_2"), "taken back"),
        ("/queue clear", Queue("demo", "clear"), "nothing waits any more"),
        ("/queue resume", Queue("demo", "resume"), "goes on"),
        ("/answer other/1#2 the blue one", Respond("other/1#2", "the blue one", "hermesctl"), "is answered"),
        ("/approve other/1#2", Respond("other/1#2", "yes", "hermesctl"), "approved"),
        ("/deny other/1#2", Respond("other/1#2", "no", "hermesctl"), "denied"),
        ("/why", Show("story", id="demo/1"), ""),
        ("/why m_7", Show("story", id="m_7"), ""),
        ("/status", Show("status"), ""),
    ],
)
def test_a_command_becomes_its_request(bench: Bench, line: str, request_: Request, says: str) -> None:
    bench.runs()
    bench.happens("message.accepted", message="m_2", text="next", kind="text", busy="queue")
    assert bench.controller.enter(line)
    assert bench.posted[-1][1] == request_
    bench.answers(Done(("demo/1",)))
    assert says in bench.notice


@pytest.mark.parametrize(
    ("line", "fault", "hint"),
    [
        ("/bsy", "there is no command /bsy", "/busy"),
        ("/zzz", "there is no command /zzz", "/help"),
        ("/queue drop 9", "nothing waits under 9", "/queue lists"),
        ("/queue jump", "/queue does not know jump", "list|drop|clear|resume"),
        ("/busy later", "there is no busy mode later", "interrupt|queue|steer|collect|default"),
        ("/answer yes", "no question is open here", "/answer ID TEXT"),
        ("/retry", "nothing here has failed", "/retry TURN"),
        ("/why", "nothing has happened here", "/why ID"),
        ("/session", "/session takes a name", "/sessions"),
        ("/voice", "/voice takes one sound file", "note.ogg"),
        ("/interrupt now", "/interrupt does not know now", "/interrupt drop"),
    ],
)
def test_a_wrong_command_is_explained_and_stays(bench: Bench, line: str, fault: str, hint: str) -> None:
    assert not bench.controller.enter(line)
    assert fault in bench.notice
    assert hint in bench.notice
    assert bench.posted == []


def test_the_busy_mode_of_this_chat_goes_with_its_messages(bench: Bench) -> None:
    bench.controller.handle(Connected("demo"))
    bench.answers(Table(({"busy_mode": "steer"},)))
    assert bench.controller.current.mode == "steer"
    bench.controller.enter("as it is set")
    assert bench.last(Submit).busy is None
    bench.controller.enter("/busy collect")
    bench.controller.enter("as chosen")
    assert bench.last(Submit).busy == "collect"
    bench.controller.enter("/busy default")
    assert bench.controller.current.mode == "steer"


def test_retry_takes_the_last_that_failed(bench: Bench) -> None:
    bench.runs()
    bench.happens("turn.failed", turn="demo/1", error="x", hint="y")
    bench.controller.enter("/retry")
    assert bench.last(Retry).turn == "demo/1"


def test_a_clip_is_stored_first_and_taken_back_when_refused(bench: Bench, tmp_path: Path) -> None:
    sound = tmp_path / "a note.ogg"
    sound.write_bytes(b"sound")
    bench.controller.enter(f'/voice "{sound}"')
    clip = tmp_path / "clips" / bench.last(Submit).clip
    assert clip.read_bytes() == b"sound"
    bench.answers(Refused("the ears are off", "set [stt] engine"))
    assert not clip.exists()
    bench.controller.enter("/voice nowhere.ogg")
    assert "nowhere.ogg does not exist" in bench.notice


def test_leaving_with_something_unsent_is_asked_about_once(bench: Bench) -> None:
    bench.controller.enter("hello")
    bench.controller.leave()
    assert not bench.controller.is_leaving
    assert "not accepted yet" in bench.notice
    bench.controller.leave()
    assert bench.controller.is_leaving


def test_sessions_are_switched_with_their_places_and_news_is_marked(bench: Bench) -> None:
    bench.runs()
    bench.controller.poll(100.0)
    bench.answers(Table(({"session": "demo", "seq": 3}, {"session": "other", "seq": 5})))
    assert bench.controller.unread == []
    bench.controller.poll(200.0)
    bench.answers(Table(({"session": "demo", "seq": 3}, {"session": "other", "seq": 6})))
    assert bench.controller.unread == ["other"]
    bench.controller.next_unread()
    bench.controller.enter("/session demo")
    assert bench.followed == [("other", None), ("demo", 3)]
    assert bench.controller.current.log.open_turn is not None


def test_help_lists_every_command_and_key(bench: Bench) -> None:
    bench.controller.enter("/help")
    said = [(each.name, each.says) for each in COMMANDS.values()] + [(key.name, key.says) for key in KEYS]
    for name, says in said:
        assert name in bench.notice
        assert says in bench.notice


def test_typed_lines_are_kept_privately_and_bounded(tmp_path: Path) -> None:
    history = PrivateHistory(find_places(str(tmp_path)))
    path = tmp_path / "chat.history"
    for number in range(2 * LINES_MAX + 1):
        history.store_string(f"line {number}\nsecond")
    history.store_string("x" * LINE_BYTES_MAX)
    with path.open("ab") as file:
        file.write(b'"cut sh')
    kept = list(history.load_history_strings())
    assert kept[0] == f"line {2 * LINES_MAX}\nsecond"
    assert len(kept) <= LINES_MAX
    assert len(path.read_bytes().splitlines()) == LINES_MAX
    assert path.stat().st_mode & 0o777 == 0o600


def ran(bench: Bench, *calls: str) -> Turn:
    """A turn with these calls, each of which has failed."""
    bench.runs()
    for call in calls:
        bench.happens("tool.started", turn="demo/1", call=call, name="shell", summary='{"command": "make…')
        bench.happens(
            "tool.finished", turn="demo/1", call=call, name="shell", ok=False, ms=5, exit=2, signal=""
        )
    return bench.controller.current.log.turns["demo/1"]


def unfolded(bench: Bench, turn: Turn) -> str:
    look = Look(80, is_unfolded=True, now=0.0)
    return "\n".join("".join(text for _, text in line) for line in item_lines(turn, SessionLog(), look))


def test_the_whole_output_of_a_tool_is_fetched_when_it_is_unfolded(bench: Bench) -> None:
    turn = ran(bench, "c1")
    bench.controller.toggle_tools()
    bench.controller.outputs.want([turn])
    bench.controller.outputs.want([turn])
    assert [each for _, each in bench.posted if isinstance(each, Show)] == [
        Show("output", id="demo/1", call="c1")
    ]
    version = turn.version
    rows = [
        {"attempt": 2, "arguments": "{}", "result": "of another attempt"},
        {"attempt": 1, "arguments": '{"command": "make all"}', "result": "[exit status 2]\none\n\ntwo"},
    ]
    bench.answers(Table(tuple(rows)))
    assert turn.version > version
    assert "    make all\n    │ [exit status 2]\n    │ one\n    │ \n    │ two" in unfolded(bench, turn)
    bench.controller.toggle_tools()
    bench.controller.toggle_tools()
    bench.controller.outputs.want([turn])
    assert len([each for _, each in bench.posted if isinstance(each, Show)]) == 2


def test_the_output_of_an_earlier_attempt_is_found_on_a_later_page(bench: Bench) -> None:
    turn = ran(bench, "c1")
    bench.controller.outputs.want([turn])
    bench.answers(Table(({"attempt": 2, "arguments": "{}", "result": "of another attempt"},), "[2,7]"))
    asked = [each for _, each in bench.posted if isinstance(each, Show)]
    assert asked[1:] == [Show("output", id="demo/1", call="c1", after="[2,7]")]
    bench.answers(Table(({"attempt": 1, "arguments": '{"command": "make all"}', "result": "one"},)))
    assert "    make all\n    │ one" in unfolded(bench, turn)


def test_outputs_are_fetched_a_few_at_a_time_and_again_on_a_new_connection(bench: Bench) -> None:
    turn = ran(bench, *(f"c{number}" for number in range(20)))

    def asked() -> int:
        return len([each for _, each in bench.posted if isinstance(each, Show) and each.what == "output"])

    bench.controller.outputs.want([turn])
    assert asked() == 8
    for ticket, _ in list(bench.posted):
        bench.controller.handle(Answered(ticket, Refused("the line was cut before the answer", "try again")))
    bench.controller.outputs.want([turn])
    assert asked() == 16
    bench.controller.handle(Connected("demo"))
    bench.controller.outputs.want([turn])
    assert asked() == 16  # eight are still under way
