"""The kind `hermes` in a real worker, with a stand-in for hermes-agent (tests/hermes_double)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.messages import (
    Answered,
    Asked,
    Beat,
    BudgetLimit,
    Failed,
    Finished,
    PastAttempt,
    PastTurn,
    Ready,
    Steer,
    Steered,
    ToolFinished,
    ToolStarted,
    ToolTrace,
)
from tests.fake_model import FakeModel
from tests.worker.hermes_scene import NOBODY, turn
from tests.worker.hermes_scene import play as play
from tests.worker.peer import Peer


def test_a_fork_of_a_rehearsed_process_answers_turn_after_turn(
    play: Callable[..., str], fake: FakeModel, tmp_path: Path
) -> None:
    async def act(peer: Peer) -> None:
        for number in (1, 2):
            end = await peer.run(turn("some words", number, fake.base_url))
            assert isinstance(end, Finished), end
            assert end.text == "You said: some words"
            assert (end.usage.input_tokens, end.usage.output_tokens) == (10, 1)

    log = play(act)
    assert "threads=1 sockets=0" in log
    assert "some words" not in log
    written = [path for path in tmp_path.rglob("*") if path.is_file() and b"some words" in path.read_bytes()]
    assert written == []


def test_a_tool_waits_for_its_record_and_takes_steers_in(play: Callable[..., str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def act(peer: Peer) -> None:
        peer.send(turn(f"touch {mark}"))
        await peer.until(lambda: peer.of(ToolStarted))
        beats = len(peer.of(Beat))
        await peer.until(lambda: len(peer.of(Beat)) > beats)
        assert not mark.exists()
        peer.send(Steer("s/1", 1, "m_2", "to the left"))
        peer.acknowledge()
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished), end
        assert end.text == "Well.\n\nDone. to the left"
        (finished,) = peer.of(ToolFinished)
        assert isinstance(finished, ToolFinished)
        assert finished.ok
        assert len(peer.of(Steered)) == 1

    play(act, lambda frame: not isinstance(frame, ToolStarted))
    assert mark.exists()


@pytest.mark.parametrize(("answer", "is_left"), [("yes", False), ("no", True), ("perhaps", True)])
def test_a_dangerous_command_is_asked_about(
    play: Callable[..., str], tmp_path: Path, answer: str, is_left: bool
) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()

    async def act(peer: Peer) -> None:
        peer.send(turn(f"remove {folder}"))
        (asked,) = await peer.until(lambda: peer.of(Asked))
        assert isinstance(asked, Asked)
        assert asked.kind == "approve"
        assert f"rm -rf {folder}" in asked.text
        assert folder.exists()
        peer.send(Answered("s/1", 1, "s/1#1", asked.hold, answer))
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished), end
        (finished,) = peer.of(ToolFinished)
        assert isinstance(finished, ToolFinished)
        assert finished.ok is not is_left

    play(act)
    assert folder.exists() is is_left


def test_a_command_that_cannot_be_shown_whole_is_denied(play: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()

    async def act(peer: Peer) -> None:
        end = await peer.run(turn(f"remove {folder}{'/.' * 4000}"))
        assert isinstance(end, Finished), end
        assert not peer.of(Asked)

    play(act)
    assert folder.exists()


def test_a_clarification_is_a_question_with_choices(play: Callable[..., str]) -> None:
    async def act(peer: Peer) -> None:
        peer.send(turn("clarify Which colour?"))
        (asked,) = await peer.until(lambda: peer.of(Asked))
        assert isinstance(asked, Asked)
        assert (asked.kind, asked.text, asked.choices) == ("clarify", "Which colour?", ("red", "blue"))
        peer.send(Answered("s/1", 1, "s/1#1", asked.hold, "blue"))
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished), end
        assert end.text == "Well.\n\nDone. blue"
        # The thread that its commands start is no reason to give the worker up.
        await peer.until(lambda: len(peer.of(Ready)) == 2)
        assert isinstance(await peer.run(turn("quiet Yes.", 2)), Finished)

    play(act)


def test_a_budget_that_is_reached_asks_before_the_agent_begins(play: Callable[..., str]) -> None:
    limit = BudgetLimit("session", "tokens", most=10, used=10)

    async def act(peer: Peer) -> None:
        peer.send(replace(turn("quiet Yes."), limits=(limit,)))
        (asked,) = await peer.until(lambda: peer.of(Asked, Finished, Failed))
        assert isinstance(asked, Asked), asked
        assert asked.text == limit.question(1)
        peer.send(Answered("s/1", 1, "s/1#1", asked.hold, "yes"))
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished), end

    play(act)


def test_history_and_instructions_come_from_the_host_and_the_home_is_the_sessions(
    play: Callable[..., str], tmp_path: Path
) -> None:
    tool = ToolTrace("call_1", "touch", "{}", "unsafe", "done", True, 0)
    history = (PastTurn(("Hello",), (PastAttempt("Hello.", (tool,)),)),)

    async def act(peer: Peer) -> None:
        end = await peer.run(replace(turn("recite"), history=history))
        assert isinstance(end, Finished), end
        assert end.text == "user, assistant, tool, assistant; Be brief.; .hermes-agent"

    play(act)
    assert (tmp_path / "home/.hermes-agent/config.yaml").exists()


@pytest.mark.parametrize(("base_url", "switched"), [(NOBODY, "before"), ("http://127.0.0.1:2/v1", "now")])
def test_the_model_is_chosen_before_the_turn_unless_the_turn_has_another_one(
    play: Callable[..., str], base_url: str, switched: str
) -> None:
    async def act(peer: Peer) -> None:
        end = await peer.run(turn("switched", base_url=base_url))
        assert isinstance(end, Finished), end
        assert end.text == switched

    play(act, model=turn("").model)


def test_what_the_agent_does_wrong_fails_its_turn_only(play: Callable[..., str]) -> None:
    async def act(peer: Peer) -> None:
        failed = await peer.run(turn("fail"))
        assert isinstance(failed, Failed)
        assert failed.error == "hermes-agent could not answer: HTTP 401: no such key"
        assert failed.hint
        empty = await peer.run(turn("empty", 2))
        assert isinstance(empty, Failed)
        assert "without an answer" in empty.error
        quiet = await peer.run(turn("quiet It was not streamed.", 3))
        assert isinstance(quiet, Finished)
        assert quiet.text == "It was not streamed."
        late = await peer.run(turn("late", 4))
        assert isinstance(late, Finished)
        assert late.text == "First.\n\nalso this"
        # A thread that is left ends with the worker.
        peer.send(turn("thread", 5))
        status, _ = await peer.exit()
        assert status == 0

    play(act)


def test_an_interpreter_without_hermes_agent_is_named_with_its_remedy(tmp_path: Path) -> None:
    """In a process of its own: our modules are set aside for good."""
    script = (
        "from worker import agents\nfrom worker.errors import AgentError\n"
        "try: agents.load('hermes')\nexcept AgentError as fault: print(fault.error); print(fault.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    fault, hint = done.stdout.splitlines()
    assert "has no hermes-agent" in fault
    assert "pip install hermes-agent" in hint
    assert list(tmp_path.iterdir()) == []
