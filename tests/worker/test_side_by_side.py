"""Tool calls of one reply run side by side: each is written down first, and results keep their order."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import (
    AgentSpec,
    Asked,
    Failed,
    Finished,
    FromWorker,
    Noted,
    ToolClass,
    ToolFinished,
    ToolStarted,
)
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.builtin import Builtin, _with_own_ids
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.model import Model, ToolCall
from worker.tools import MakeTool, Note, Tool, shell
from worker.tools.ask import Ask
from worker.tools.shell import Shell


class Gate:
    """A tool whose calls end when so many of them are under way, or when all that ever will are."""

    name = "gate"
    description = "waits for company"
    schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012
    repeat: ToolClass = "pure"

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.inside = 0
        self.most = 0
        self._changed = asyncio.Event()

    async def run(self, arguments: dict[str, Any], note: Note) -> str:
        number = arguments["number"]
        self.begun.append(number)
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._changed.set()
        note(f"at the gate: {number}")
        while not any(other >= arguments.get("after", 0) for other in self.begun):
            self._changed.clear()
            await self._changed.wait()
        for _ in range(arguments.get("ticks", 10)):
            await asyncio.sleep(0)
        self.inside -= 1
        if arguments.get("fails") == "call":
            raise LookupError("no such gate")
        if arguments.get("fails") == "attempt":
            raise AgentError("the gate is shut", "open it")
        return f"through {number}"

    def close(self) -> None: ...


def gate(number: int, **arguments: Any) -> dict[str, Any]:
    return {"name": "gate", "arguments": {"number": number, **arguments}}


def play(
    fake: FakeModel,
    *calls: dict[str, Any],
    safe: Callable[[FromWorker], bool] = lambda _: True,
    meanwhile: Callable[[Desk, Gate], Any] | None = None,
) -> tuple[Desk, Gate]:
    fake.set_mode("tools", calls=list(calls))

    async def scene() -> tuple[Desk, Gate]:
        desk, model, gates = Desk(safe), Model(), Gate()
        made: dict[str, MakeTool] = {"gate": lambda: gates, "shell": Shell, "ask": Ask}
        agent = Builtin(AgentSpec("default", "builtin", {"tools": list(made)}), model, made)
        running = asyncio.create_task(Attempt(assign(fake.base_url), desk.outbox).run(agent.answer))
        if meanwhile is not None:
            await meanwhile(desk, gates)
        async with asyncio.timeout(30):
            await running
        await model.close()
        return desk, gates

    return asyncio.run(scene())


def told(fake: FakeModel) -> list[str]:
    return [message["content"] for message in fake.requests()[-1].messages if message["role"] == "tool"]


def test_two_commands_that_wait_for_each_other_both_end(fake: FakeModel, tmp_path: Path) -> None:
    def meeting(mine: str, other: str) -> dict[str, Any]:
        wait = f"until test -e {tmp_path}/{other}; do sleep 0.01; done"
        command = f"touch {tmp_path}/{mine}; {wait}; echo {mine}"
        return {"name": "shell", "arguments": {"command": command, "timeout_seconds": 20}}

    play(fake, meeting("one", "two"), meeting("two", "one"))
    assert told(fake) == ["[exit status 0]\none\n", "[exit status 0]\ntwo\n"]


def test_results_keep_the_order_of_the_calls(fake: FakeModel) -> None:
    """The first ends last: it waits for the third to begin."""
    desk, _ = play(fake, gate(1, after=3), gate(2), gate(3))
    assert told(fake) == ["through 1", "through 2", "through 3"]
    started = [frame.call for frame in desk.frames if isinstance(frame, ToolStarted)]
    finished = [frame.call for frame in desk.frames if isinstance(frame, ToolFinished)]
    assert sorted(started) == sorted(finished)
    asked = fake.requests()[-1].messages
    assert [call["id"] for each in asked for call in each.get("tool_calls", ())] == started
    assert [each["tool_call_id"] for each in asked if each["role"] == "tool"] == started


def test_none_runs_before_it_is_written_down(fake: FakeModel) -> None:
    async def meanwhile(desk: Desk, gates: Gate) -> None:
        await desk.until(lambda: desk.kinds().count("ToolStarted") == 2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert gates.begun == []
        desk.outbox.acknowledge(1)
        await desk.until(lambda: "ToolFinished" in desk.kinds())
        assert gates.begun == [1]
        desk.outbox.acknowledge(2)

    _, gates = play(fake, gate(1), gate(2), safe=lambda _: False, meanwhile=meanwhile)
    assert gates.begun == [1, 2]


def test_so_many_run_at_once_and_no_more(fake: FakeModel) -> None:
    _, gates = play(fake, *(gate(number, after=7) for number in range(20)))
    assert gates.begun == list(range(20))
    assert gates.most == 8
    assert told(fake) == [f"through {number}" for number in range(20)]


def test_a_failed_call_does_not_stop_the_others(fake: FakeModel) -> None:
    desk, _ = play(fake, gate(1, fails="call"), gate(2, after=2), {"name": "kettle", "arguments": {}})
    assert told(fake)[:2] == ["error: LookupError: no such gate", "through 2"]
    assert "there is no tool of that name" in told(fake)[2]
    assert isinstance(desk.last(), Finished)


def test_a_call_that_ends_the_attempt_lets_the_others_come_to_a_result(fake: FakeModel) -> None:
    desk, _ = play(fake, gate(1, fails="attempt"), gate(2, after=2, ticks=500))
    last = desk.last()
    assert isinstance(last, Failed)
    assert last.error == "the gate is shut"
    assert [frame.result for frame in desk.frames if isinstance(frame, ToolFinished)] == ["through 2"]


def test_a_question_among_them_is_asked_when_the_others_are_done(fake: FakeModel) -> None:
    desk, _ = play(fake, {"name": "ask", "arguments": {"question": "Which?"}}, gate(1, after=2), gate(2))
    frames = [type(frame) for frame in desk.frames if not isinstance(frame, Noted)]
    assert frames == [ToolStarted, ToolStarted, ToolFinished, ToolFinished, ToolStarted, Asked]


def test_a_note_names_the_call_that_it_is_of(fake: FakeModel) -> None:
    desk, _ = play(fake, gate(1), gate(2))
    started = [frame.call for frame in desk.frames if isinstance(frame, ToolStarted)]
    notes = [(frame.call, frame.text) for frame in desk.frames if isinstance(frame, Noted)]
    assert notes == [(started[0], "at the gate: 1"), (started[1], "at the gate: 2")]


def test_a_command_that_runs_is_not_let_go_of_for_many_that_have_ended(tmp_path: Path) -> None:
    """Each of the many leaves something behind that holds its pipe."""

    async def scene() -> list[str]:
        tool: Tool = Shell()
        until = f"until test -e {tmp_path}/go; do sleep 0.01; done"
        long = asyncio.create_task(tool.run({"command": f"{until}; echo whole"}, print))
        try:
            for _ in range(36):
                await tool.run({"command": "sleep 300 & echo left"}, lambda _: None)
            (tmp_path / "go").touch()
            return [getattr(await long, "text", "")]
        finally:
            tool.close()

    assert asyncio.run(scene()) == ["[exit status 0]\nwhole\n"]


def test_each_call_of_a_reply_has_an_id_of_its_own() -> None:
    """Whatever the server calls them; an id of ours may be one of its own, too."""
    given = ("same", "same", "", "past", "call_6", "x" * 10_000)
    calls = _with_own_ids(tuple(ToolCall(name, "lamp", "{}") for name in given), {"past", "call_4"})
    names = [call.call for call in calls]
    assert len({*names, "past", "call_4"}) == len(given) + 2
    assert names[0] == "same"
    assert max(map(len, names)) < 20


def test_a_command_that_has_made_room_or_was_never_begun_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shell, "_HELD_MAX", 1)

    async def act() -> None:
        before, tool = len(os.listdir("/proc/self/fd")), Shell()
        for command in ("head -c 100000 /dev/zero", "true"):
            await tool.run({"action": "start", "command": command}, print)
            (held,) = tool._background.values()
            assert await held.command.wait(30)
        with pytest.raises(FileNotFoundError):
            await tool.run({"command": "true", "folder": "/no/such/folder"}, print)
        assert len(os.listdir("/proc/self/fd")) == before
        tool.close()

    asyncio.run(act())
