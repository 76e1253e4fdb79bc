"""What is left of an agent's code at the end of its turn, and where its output goes."""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import AgentSpec, Finished
from tests.waiting import until
from tests.worker.test_context import play
from worker import log
from worker.agents import agent_thread, python
from worker.agents.context import Context
from worker.agents.python import Python
from worker.errors import AgentError


def test_output_goes_to_a_file_of_its_user_and_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workspace is the agent's: a link in it may name anything that the worker can write to."""
    file, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(tmp_path / "other")
    diverted: list[tuple[str, int]] = []

    def note(descriptor: int, standard: int) -> None:
        """Standard output and error are those of the test."""
        diverted.append((os.readlink(f"/proc/self/fd/{descriptor}"), standard))

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(log, "_own", sys.stderr)
        meanwhile.setattr(os, "dup2", note)
        agent_thread.divert_output("mine", str(file))
        with pytest.raises(AgentError, match="cannot be written"):
            agent_thread.divert_output("mine", str(link))
        agent_thread.divert_output("mine")
    assert diverted == [(str(file), 1), (str(file), 2), ("/dev/null", 1), ("/dev/null", 2)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not (tmp_path / "other").exists()
    assert os.listdir("/proc/self/fd") == before


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The loop of a worker's asynchronous agent, for this test only."""
    monkeypatch.setattr(python, "_runner", None)
    yield
    if python._runner is not None:
        python._runner.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    python._run_in_loop(work)


def test_work_of_an_executor_that_has_not_begun_does_not_begin_after_the_turn(alone: None) -> None:
    gate, began = threading.Event(), list[int]()

    def occupy(number: int) -> None:
        began.append(number)
        gate.wait()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for number in range(100):
            loop.run_in_executor(None, occupy, number)

    run(work())
    before = len(began)
    gate.set()
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("agent_")])
    assert 0 < before < 100
    assert len(began) == before


def test_a_task_that_fails_while_it_is_cancelled_fails_no_turn(alone: None) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    async def work() -> None:
        tasks.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)

    for _ in range(2):
        run(work())
    assert all(task.done() for task in tasks)


def test_a_generator_says_what_it_yields_and_then_what_it_returns() -> None:
    def agent(context: Context) -> Generator[str | None, None, str]:
        yield "one, "
        yield None
        yield "two, "
        return "three"

    made = Python(AgentSpec("mine", "python", {"entry": "theirs:agent"}))
    end = play(lambda context: made._call(agent, context._host))[0].last()
    assert isinstance(end, Finished), end
    assert end.text == "one, two, three"
