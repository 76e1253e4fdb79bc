"""`tail` and `interrupt` against a scripted supervisor."""

import json
from pathlib import Path

from ipc.messages import (
    Answer,
    Cut,
    Delta,
    Done,
    Interrupt,
    Refused,
    Request,
    Show,
    Subscribe,
    Subscribed,
    Table,
)
from tests.hermesctl.hand import Running, hermesctl
from tests.hermesctl.peer import Peer, Story, opened

KILLED = {"processes": 4, "all_dead": True, "ms": 5, "how": "pidns"}


def following(peer: Peer, request: Request) -> list[Answer]:
    if isinstance(request, Show):
        return [Table(())]
    return [Subscribed(0 if request == Subscribe(None) else 1)]


def test_tail_prints_time_session_type_and_gist(tmp_path: Path) -> None:
    story = Story()
    with opened(tmp_path, following) as peer, Running(tmp_path, "tail", "demo", "--after", "0") as running:
        opened_turn = story.event("turn.opened", turn="demo/1", messages=["m_1"])
        done = story.event("turn.done", turn="demo/1", text="Paris.", usage={"output_tokens": 5})
        peer.say(Subscribe, opened_turn, Delta("demo", "demo/1", 1, 0, "Paris."), done)
        first, second = running.wait_for("tokens)\n").splitlines()
        running.press_ctrl_c()
        assert running.end().code == 130
        assert peer.requests(Subscribe) == [Subscribe("demo", 0)]
    assert first.split() == ["19:46:41.100", "demo", "1", "turn.opened", "demo/1", "answers", "m_1"]
    assert second.endswith("demo/1 “Paris.” (5 tokens)")


def test_a_seq_without_a_session_is_a_usage_error(tmp_path: Path) -> None:
    assert hermesctl(tmp_path, "tail", "--after", "3").code == 2


def test_tail_json_prints_events_and_deltas_one_a_line(tmp_path: Path) -> None:
    story = Story()
    with opened(tmp_path, following) as peer, Running(tmp_path, "tail", "--json") as running:
        peer.say(Subscribe, Delta("demo", "demo/1", 1, 0, "Pa"), story.event("turn.strange", odd=[1]))
        lines = [json.loads(line) for line in running.wait_for("strange").splitlines()]
    assert lines[0]["type"] == "delta"
    assert lines[1] == {"seq": 1, "session": "demo", "type": "turn.strange", "at": 1731700001.1, "odd": [1]}


def test_tail_goes_on_by_itself_after_a_restart_without_repeats(tmp_path: Path) -> None:
    story = Story(seq=1)
    first, second = story.event("a.one"), story.event("a.two")
    with opened(tmp_path, following) as peer:
        running = Running(tmp_path, "tail", "demo")
        peer.say(Subscribe, first)
        running.wait_for("a.one")
    with running:
        running.wait_for("gone", "err")
        with opened(tmp_path, following) as peer:
            assert peer.wait_for(Subscribe) == Subscribe("demo", 2)
            peer.say(Subscribe, first, second)
            assert running.wait_for("a.two").count("a.one") == 1


def test_tail_of_all_catches_up_every_session_after_a_restart(tmp_path: Path) -> None:
    demo, other = Story("demo"), Story("other")
    with opened(tmp_path, following) as peer:
        running = Running(tmp_path, "tail")
        peer.say(Subscribe, demo.event("a.one"))
        running.wait_for("a.one")
    missed: dict[str, list[Answer]] = {"demo": [demo.event("a.missed")], "other": [other.event("b.missed")]}
    live = demo.event("a.live")
    missed["demo"].append(live)

    def second_life(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(({"session": "demo", "seq": 3}, {"session": "other", "seq": 1}))]
        assert isinstance(request, Subscribe)
        return [Subscribed(0), live] if request.session is None else [Subscribed(3), *missed[request.session]]

    with running, opened(tmp_path, second_life) as peer:
        text = running.wait_for("b.missed")
        assert [text.count(name) for name in ("a.one", "a.missed", "a.live")] == [1, 1, 1]
        assert peer.requests(Subscribe) == [Subscribe(None), Subscribe("demo", 1), Subscribe("other", 0)]


def test_a_tail_that_was_cut_follows_again_from_its_last_seq(tmp_path: Path) -> None:
    story = Story(seq=1)
    with opened(tmp_path, following) as peer, Running(tmp_path, "tail", "demo") as running:
        peer.say(Subscribe, story.event("a.one"), Cut("too slow"))
        assert peer.wait_for(Subscribe, 2) == Subscribe("demo", 2)
        peer.say(Subscribe, story.event("a.two"))
        running.wait_for("a.two")


def test_interrupt_prints_the_proof(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Interrupt):
            fields = {"turn": "demo/3", "by": "hermesctl", "partial": "", "killed": KILLED}
            peer.say(Subscribe, Story(seq=1).event("turn.interrupted", **fields))
            return [Done(("demo/3",))]
        return following(peer, request)

    with opened(tmp_path, reply) as peer:
        result = hermesctl(tmp_path, "interrupt", "demo", "--drop", "--expect-turn", "demo/3")
        assert peer.requests(Interrupt) == [Interrupt("demo", "hermesctl", "demo/3", drop=True)]
    assert (result.code, result.out) == (
        0,
        "demo/3 interrupted: 4 processes ended in 5 ms, none left (pidns)\n",
    )


def test_interrupt_says_when_the_turn_was_done_first(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Interrupt):
            peer.say(Subscribe, Story(seq=1).event("turn.done", turn="demo/3", text="x"))
            return [Done(("demo/3",))]
        return following(peer, request)

    with opened(tmp_path, reply):
        assert hermesctl(tmp_path, "interrupt", "demo").out == "demo/3 was done before the interrupt\n"


def test_interrupt_of_all_says_when_nothing_runs(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Done()] if isinstance(request, Interrupt) else following(peer, request)

    with opened(tmp_path, reply) as peer:
        result = hermesctl(tmp_path, "interrupt", "--all")
        assert peer.requests(Interrupt) == [Interrupt(None, "hermesctl")]
    assert (result.code, result.out) == (0, "nothing runs in any session\n")


def test_interrupt_can_be_refused(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Interrupt):
            return [Refused("no session demo", "hermesctl sessions")]
        return following(peer, request)

    with opened(tmp_path, reply):
        assert hermesctl(tmp_path, "interrupt", "demo").code == 5


def test_interrupt_needs_a_session_or_all(tmp_path: Path) -> None:
    for line in ([], ["demo", "--all"], ["--all", "--expect-turn", "demo/1"]):
        assert hermesctl(tmp_path, "interrupt", *line).code == 2
