"""The kind `python` in a real worker: what a user's function says, leaves behind and does wrong."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ipc.messages import (
    AgentSpec,
    Answered,
    Asked,
    Assign,
    Beat,
    Delta,
    Failed,
    Finished,
    Noted,
    PastAttempt,
    Steer,
    Steered,
    ToolFinished,
    ToolStarted,
)
from tests.waiting import soon
from tests.worker.peer import Peer, assign, worker

WORDS = "a person's very own words"


def turn(entry: str, text: str = WORDS, *, number: int = 1, **options: object) -> Assign:
    """A turn of an agent of these tests, or of another module that `entry` names whole."""
    whole = entry if ":" in entry else f"tests.worker.sample_agents:{entry}"
    spec = AgentSpec("mine", "python", {"entry": whole, **options})
    return replace(assign("http://127.0.0.1:1/v1", text, turn=f"s/{number}"), agent=spec)


def play(folder: Path, act: Callable[[Peer], Awaitable[None]]) -> str:
    """Gives the worker's log."""

    async def scene() -> str:
        async with worker(folder) as peer:
            await act(peer)
            if peer.process is not None and peer.process.poll() is None:
                return await peer.end()
            return (await peer.exit())[1]

    return asyncio.run(scene())


@pytest.mark.parametrize("entry", ["plain", "piecewise", "awaited", "streamed", "an_object"])
def test_a_function_of_every_kind_answers_turn_after_turn(tmp_path: Path, entry: str) -> None:
    async def act(peer: Peer) -> None:
        for number in (1, 2):
            end = await peer.run(turn(entry, f"hello {number}", number=number))
            assert isinstance(end, Finished), end
            assert end.text == f"You said: hello {number}"

    assert "hello" not in play(tmp_path, act)


def test_an_answer_for_another_turn_or_attempt_is_not_taken(tmp_path: Path) -> None:
    """All of them have the number of the first question that an attempt holds for."""

    async def act(peer: Peer) -> None:
        peer.send(turn("asks", number=2))
        await peer.until(lambda: peer.of(Asked))
        peer.send(Answered("s/1", 1, "s/1#1", 1, "the answer to an earlier turn"))
        peer.send(Answered("s/2", 9, "s/2#1", 1, "the answer to another attempt"))
        peer.send(Answered("s/2", 1, "s/2#1", 1, "blue"))
        (end,) = await peer.until(lambda: peer.of(Finished))
        assert isinstance(end, Finished)
        assert end.text == "You chose blue."

    play(tmp_path, act)


@pytest.mark.parametrize("entry", ["lamp", "async_lamp"])
def test_tools_are_recorded_first_and_steers_arrive(tmp_path: Path, entry: str) -> None:
    mark = tmp_path / "shines"

    async def scene() -> None:
        async with worker(tmp_path, lambda frame: not isinstance(frame, ToolStarted)) as peer:
            peer.send(turn(entry, str(mark)))
            await peer.until(lambda: peer.of(ToolStarted))
            beats = len(peer.of(Beat))
            await peer.until(lambda: len(peer.of(Beat)) > beats)
            assert not mark.exists()
            peer.acknowledge()
            await peer.until(lambda: peer.of(ToolFinished))
            assert mark.exists()
            peer.send(Steer("s/1", 1, "m_2", "warms"))
            (end,) = await peer.until(lambda: peer.of(Finished, Failed))
            assert isinstance(end, Finished), end
            assert end.text == "It shines, and warms."
            assert [frame.message for frame in peer.of(Steered) if isinstance(frame, Steered)] == ["m_2"]

    asyncio.run(scene())


BAD = [
    ("nothing", "returned None and said nothing", "return a text"),
    ("a_number", "a value of type int, which is no text", "str"),
    ("numbers", "a value of type int, which is no text", "str"),
    ("forgotten", "to be awaited from a function that is not async", "str"),
    ("broken", "the agent broke (KeyError)", "log"),
    ("out_of_items", "the agent broke (", "log"),
    ("exits", "raised SystemExit", "return instead"),
    ("nowhere.to_be:found", "there is no module nowhere", "path"),
    ("tests.worker.sample_agents:absent", "has no absent", "define absent"),
    ("tests.worker.sample_agents:NUMBER", "a value of type int", "def NUMBER(context)"),
    ("tests.worker.raising_module:agent", "raised ZeroDivisionError", "import tests.worker.raising_module"),
    (":agent", "entry is ':agent'", "package.module:function"),
]


@pytest.mark.parametrize(("entry", "fault", "remedy"), BAD, ids=[case[0] for case in BAD])
def test_a_fault_of_the_agent_is_one_sentence_with_its_remedy(
    tmp_path: Path, entry: str, fault: str, remedy: str
) -> None:
    async def act(peer: Peer) -> None:
        end = await peer.run(turn(entry))
        assert isinstance(end, Failed), end
        assert fault in end.error
        assert remedy in end.hint
        assert not end.again
        assert WORDS not in end.error + end.hint
        # The next turn of the same worker is answered.
        assert isinstance(await peer.run(turn("plain", number=2)), Finished)

    assert WORDS not in play(tmp_path, act)


def test_what_an_agent_prints_goes_nowhere(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        for number, entry in enumerate(("prints", "closes_its_output", "plain"), 1):
            assert isinstance(await peer.run(turn(entry, number=number)), Finished)

    log = play(tmp_path, act)
    assert WORDS not in log
    assert log.count("attempt.ended") == 3


def test_what_an_agent_prints_goes_to_the_file_of_the_settings(tmp_path: Path) -> None:
    output = tmp_path / "printed.txt"

    async def act(peer: Peer) -> None:
        assert isinstance(await peer.run(turn("prints", output=str(output))), Finished)
        end = await peer.run(turn("plain", number=2, output=str(tmp_path)))
        assert isinstance(end, Failed)
        assert "output" in end.hint

    assert WORDS not in play(tmp_path, act)
    assert output.read_text().count(WORDS) == 4


def test_a_worker_with_a_thread_left_ends_once_the_end_of_its_turn_is_acknowledged(tmp_path: Path) -> None:
    async def scene() -> None:
        # A later acknowledgement covers all frames before it, so beats get none either.
        async with worker(tmp_path, lambda frame: not isinstance(frame, Finished | Beat)) as peer:
            peer.send(turn("leaves_a_thread"))
            (end,) = await peer.until(lambda: peer.of(Finished, Failed))
            beats = len(peer.of(Beat))
            await peer.until(lambda: len(peer.of(Beat)) > beats)
            peer.acknowledge()
            status, log = await peer.exit()
            assert isinstance(end, Finished)
            assert status == 0
            assert "attempt.left_threads" in log

    asyncio.run(scene())


def test_a_thread_that_its_module_keeps_costs_no_worker(tmp_path: Path) -> None:
    module = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (tmp_path / "with_a_thread.py").write_text(module + "def agent(context):\n    return 'here'\n")

    async def act(peer: Peer) -> None:
        for number in (1, 2):
            end = await peer.run(turn("with_a_thread:agent", number=number, path=[str(tmp_path)]))
            assert isinstance(end, Finished), end

    assert "attempt.left_threads" not in play(tmp_path, act)


def test_a_process_that_is_left_ends_with_the_turn(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        end = await peer.run(turn("leaves_a_process"))
        assert isinstance(end, Finished), end
        left = int(end.text)
        await soon(lambda: not os.path.exists(f"/proc/{left}"))

    play(tmp_path, act)


def test_the_agent_finds_the_exit_status_of_its_own_commands(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        end = await peer.run(turn("ends_badly"))
        assert isinstance(end, Finished), end
        assert end.text == "1"

    play(tmp_path, act)


def test_tasks_end_with_the_turn_and_their_loop_does_not(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        for number in (1, 2):
            end = await peer.run(turn("leaves_a_task", number=number))
            assert isinstance(end, Finished), end
            assert end.text == "1 loop, 0 others"

    play(tmp_path, act)


def test_what_is_said_after_the_end_reaches_no_turn(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        first = await peer.run(turn("remembers"))
        second = await peer.run(turn("remembers", number=2))
        assert isinstance(first, Finished)
        assert isinstance(second, Finished)
        assert first.text.partition(":")[0] == second.text.partition(":")[0]
        assert "the turn is over" in second.text
        assert peer.spoken("s/1") == first.text

    play(tmp_path, act)


def test_the_loop_beats_while_the_agent_blocks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with worker(tmp_path) as peer:
            peer.send(turn("blocks"))
            await peer.until(lambda: peer.of(Delta))
            beats = len(peer.of(Beat))
            await peer.until(lambda: len(peer.of(Beat)) > beats + 1)

    asyncio.run(scene())


def test_an_attempt_that_follows_a_lost_one_may_have_nothing_to_add(tmp_path: Path) -> None:
    async def act(peer: Peer) -> None:
        work = replace(
            turn("nothing"), attempt=2, tried=(PastAttempt("All was said.", (), "lost"),), offset=13
        )
        assert isinstance(await peer.run(work), Finished)
        assert [frame.text for frame in peer.of(Noted) if isinstance(frame, Noted)] == ["thinking"]

    play(tmp_path, act)
