"""hermes-agent hosted, beside hermes-agent alone: what an interrupt does, and what a fork of it costs.

Alone it is one AIAgent in threads, stopped by its flag, as in its own gateway (bench/hosted_alone.py); a
second turn begins when the first has returned. Hosted it is an agent of kind `hermes`, and the message of the
second turn interrupts the first. Both are told to begin by one client, which waits for the first text of the
second turn. Three turns are interrupted: a stream; a command that ignores signals; and a `patch` whose search
in a large file takes minutes and does not look at the flag, after a command that left a process behind. Alone
is given up after a hundred and fifty times what ours took; that time counts for it.

`hermes acp`, cancelled during a command, is asked once more, on a bare connection and hosted by kind `acp`.

hermes-agent is a peer of the tests (tests/agents_real); without it nothing is measured.
"""

import asyncio
import contextlib
import json
import os
import queue
import shlex
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import acp
from acp import schema

from bench.goals import Outcome, rounds_asked, tell
from bench.report import table
from bench.worker_memory import own_bytes
from ipc.messages import Delta, Event
from tests.agents_real.packages import lay_packages
from tests.agents_real.peers import peers
from tests.agents_real.test_acp_agents import hermes as acp_tables
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until

TITLE = "hermes-agent hosted, beside hermes-agent alone"
ROUNDS = 10
_PEER = "hermes-agent"
_SECONDS_MAX = 180.0
# The clock of the CPU time of a process is its inverted pid with this below, see clock_getcpuclockid(3).
_CPU_CLOCK_OF_PROCESS = 2
# Alone is given so many times what ours took, and at least this long.
_PATIENCE = 150.0
_PATIENCE_SECONDS_MIN = 20.0
_NEXT = "Go on."
# Of processes that a turn leaves: no other one sleeps so long.
_MARK = str(10_000_000 + os.getpid())
_STREAM = "[[slow count=100000 interval=0.02]]"
_STUBBORN = f"trap '' TERM INT HUP; sleep {_MARK}"
# The lines that are searched for, a hundred, are compared with the file around each of its lines.
_SLEEP = f"subprocess.Popen(['sleep', '{_MARK}'], start_new_session=True, stdout=-3, stderr=-3)"
_BESIDE = f'seq 200000 > large; echo "import subprocess; {_SLEEP}" > start.py; python3 start.py'
_ABSENT = "\n".join(f"no such line {number}" for number in range(100))
_SEARCH = {"path": "large", "old_string": _ABSENT, "new_string": ""}


def _uses(*calls: tuple[str, dict[str, Any]]) -> str:
    """A message that has the model call these tools, one after the other."""
    rounds = (json.dumps([{"name": name, "arguments": arguments}]) for name, arguments in calls)
    # Two brackets in a row would end the directive.
    listed = shlex.quote(f"[ {', '.join(rounds)} ]")
    return f"[[tools calls={listed}]]"


# What the first turn does, and how many tools it starts before it is interrupted.
_TURNS = {
    "a stream": (_STREAM, 0),
    "a command that ignores signals": (_uses(("terminal", {"command": _STUBBORN})), 1),
    "a tool that ignores the flag": (_uses(("terminal", {"command": _BESIDE}), ("patch", _SEARCH)), 2),
}
_GOALS = {"a stream": 1.0, "a command that ignores signals": None, "a tool that ignores the flag": 0.01}


def _left() -> int:
    """Ends the processes of the turn that are left, and counts them."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"sleep\0{_MARK}\0".encode() == (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), 9)
                count += 1
    return count


def _late_requests(model: FakeModel, before: int) -> int:
    """Requests since then for another message than that of the next turn."""
    return sum(1 for each in model.requests()[before:] if _NEXT not in str(each.messages[-1]["content"]))


class Seen:
    """What was seen after the interrupts of one kind of turn."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self.requests = self.processes = self.given_up = 0


class Alone:
    """hermes-agent in a process of its own; one that was given up is replaced."""

    def __init__(self, python: Path, home: Path, model: FakeModel) -> None:
        self._line = [str(python), str(Path(__file__).with_name("hosted_alone.py")), model.base_url]
        self._home = home
        self._model = model
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._line,
            cwd=self._home,
            env=os.environ | {"HERMES_HOME": str(self._home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._words: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._words), daemon=True).start()
        assert self._await("ready", _SECONDS_MAX)
        self._tell("say", "hello")  # its first turn is not measured
        assert self._await("end", _SECONDS_MAX)

    def interrupted(self, text: str, tools: int, seconds_max: float, seen: Seen) -> None:
        self._tell("say", text)
        for word in ["tool"] * tools or ["text"]:
            assert self._await(word, _SECONDS_MAX)
        time.sleep(1)  # the tool is at work
        before, began = len(self._model.requests()), time.perf_counter()
        self._tell("stop", _NEXT)
        is_answered = self._await("end", seconds_max) and self._await("text", seconds_max)
        seen.milliseconds.append((time.perf_counter() - began) * 1000)
        seen.requests += _late_requests(self._model, before)
        seen.processes += _left()
        if is_answered:
            assert self._await("end", _SECONDS_MAX)
            return
        seen.given_up += 1
        self.close()
        self._start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _tell(self, what: str, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, text]) + "\n")
        self._process.stdin.flush()

    def _await(self, wanted: str, seconds_max: float) -> bool:
        deadline = time.monotonic() + seconds_max
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                if self._words.get(timeout=left) == wanted:
                    return True
        return False

    @staticmethod
    def _read(process: "subprocess.Popen[str]", words: "queue.Queue[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            words.put(line.strip())


class Turns(NamedTuple):
    """CPU and wall milliseconds of a session's first turn, a steady one, and the first of a later fork."""

    first: tuple[float, float]
    steady: tuple[float, float]
    forked: tuple[float, float]


class Hosted:
    """One service with an agent of kind hermes; every interrupt is in a session of its own."""

    def __init__(self, service: Service, model: FakeModel) -> None:
        self._service = service
        self._model = model
        self._sessions = 0

    def rest(self) -> list[int]:
        """Returns the processes of the worker and the spare when both are idle."""
        self._await_states("idle", "idle")
        return [row["pid"] for row in self._service.show("workers")]

    def _await_states(self, *states: str) -> None:
        """Of the worker and the spare."""
        rows = self._service.show
        until(lambda: sorted(row["state"] for row in rows("workers")) == sorted(states), _SECONDS_MAX)

    def interrupted(self, text: str, tools: int, seen: Seen) -> None:
        session = self._new_session()
        self.rest()
        listener = self._service.listen(session)
        self._service.say(session, text)
        listener.until(lambda: len(listener.of_type("tool.started")) == tools, _SECONDS_MAX)
        if not tools:
            listener.until(lambda: listener.words, _SECONDS_MAX)
        time.sleep(1)  # the tool is at work
        self._await_states("busy", "idle")
        before, began = len(self._model.requests()), time.perf_counter()
        self._service.say(session, _NEXT, busy="interrupt")
        listener.until(
            lambda: any(isinstance(each, Delta) and each.turn == f"{session}/2" for each in listener.heard),
            _SECONDS_MAX,
        )
        seen.milliseconds.append((time.perf_counter() - began) * 1000)
        seen.requests += _late_requests(self._model, before)
        seen.processes += _left()
        assert listener.ending(f"{session}/2", _SECONDS_MAX).type == "turn.done"

    def turns(self) -> Turns:
        """A session's third turn is a steady one; the fourth is interrupted, so the fifth has a new fork."""
        session = self._new_session()
        listener = self._service.listen(session)
        seen = {}
        for number in (1, 2, 3, 5):
            if number == 5:
                self._service.say(session, _STREAM)
                listener.until(
                    lambda: listener.of_type("attempt.opened")[-1].fields["turn"] == f"{session}/4"
                )
                self._service.interrupt(session)
            before = {pid: _cpu_milliseconds(pid) for pid in self.rest()}
            self._service.say(session, "Say a few words, as ever.")
            ended = listener.ending(f"{session}/{number}", _SECONDS_MAX)
            opened: Event = listener.of_type("attempt.opened")[-1]
            self.rest()
            pid = opened.fields["pid"]
            seen[number] = (_cpu_milliseconds(pid) - before[pid], (ended.at - opened.at) * 1000)
        return Turns(first=seen[1], steady=seen[3], forked=seen[5])

    def _new_session(self) -> str:
        self._sessions += 1
        return f"s{self._sessions}"


def _cpu_milliseconds(pid: int) -> float:
    """Of all its threads, ended ones too. /proc/PID/stat counts by ticks of 10 ms, a sixth of a turn."""
    clock = ~pid << 3 | _CPU_CLOCK_OF_PROCESS
    return time.clock_gettime_ns(clock) / 1e6


class _Watching:
    """A client of the bare connection."""

    def __init__(self) -> None:
        self.has_tool = asyncio.Event()
        self.text = ""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if isinstance(update, schema.ToolCallStart):
            self.has_tool.set()
        if isinstance(update, schema.AgentMessageChunk):
            self.text += getattr(update.content, "text", "")

    async def request_permission(self, **_: Any) -> schema.RequestPermissionResponse:
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))


async def _bare_acp(program: Path, home: Path, seconds_max: float) -> tuple[bool, float]:
    """Returns whether `hermes acp` answers after a cancelled command, and the MiB it held before."""
    watching = _Watching()
    environment = {"HOME": str(home), "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin"}
    async with acp.spawn_agent_process(
        cast("acp.Client", watching), str(program), "acp", env=environment, cwd=home
    ) as (connection, process):
        await connection.initialize(acp.PROTOCOL_VERSION, schema.ClientCapabilities())
        session = (await connection.new_session(str(home), mcp_servers=[])).session_id
        held = own_bytes(process.pid) / 2**20
        turn = asyncio.ensure_future(
            connection.prompt(session, [acp.text_block(_uses(("terminal", {"command": _STUBBORN})))])
        )
        await asyncio.wait_for(watching.has_tool.wait(), _SECONDS_MAX)
        await asyncio.sleep(1)  # the tool is at work
        await connection.cancel(session)
        await asyncio.wait({turn}, timeout=_SECONDS_MAX)
        turn.cancel()
        watching.text = ""
        with contextlib.suppress(TimeoutError, acp.RequestError):
            await asyncio.wait_for(connection.prompt(session, [acp.text_block(_NEXT)]), seconds_max)
        process.kill()
    return "You said" in watching.text, held


def _hosted_acp(home: Path, model: FakeModel) -> tuple[bool, float]:
    """The same, hosted; and the seconds from the interrupt to the end of the next turn."""
    with Service(home / "service", settings_for(model, **acp_tables(home, model))) as service:
        listener = service.listen("a")
        service.say("a", _uses(("terminal", {"command": _STUBBORN})))
        listener.until(lambda: listener.of_type("tool.started"), _SECONDS_MAX)
        time.sleep(1)  # the tool is at work
        began = time.perf_counter()
        service.say("a", _NEXT, busy="interrupt")
        ended = listener.ending("a/2", _SECONDS_MAX)
        return "You said" in str(ended.fields.get("text")), time.perf_counter() - began


@contextlib.contextmanager
def _stage(folder: Path, model: FakeModel) -> Iterator[tuple[Hosted, Alone]]:
    python = peers()[_PEER].folder / "bin/python"
    lay_packages(folder / "home", str(python))
    agent = f'kind = "hermes"\npython = "{python}"'
    tables = {"workers": "count = 1\nspares = 1", "agents.default": agent}
    alone = folder / "alone"
    alone.mkdir()
    settings = {"model": {"context_length": 128_000}, "agent": {"environment_probe": False}}
    (alone / "config.yaml").write_text(json.dumps(settings))
    with Service(folder / "home", settings_for(model, **tables)) as service:
        service.say("warm", "hello")
        assert service.listen("warm").ending("warm/1", _SECONDS_MAX).type == "turn.done"
        theirs = Alone(python, alone, model)
        try:
            yield Hosted(service, model), theirs
        finally:
            theirs.close()
            _left()


def measure(rounds: int) -> list[Outcome]:
    if not peers()[_PEER].is_installed:
        print(f"{_PEER} is not installed, and nothing is measured: python -m tests.agents_real.peers {_PEER}")
        return []
    seen = {name: (Seen(), Seen()) for name in _TURNS}
    turns: list[Turns] = []
    held: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as name, FakeModel() as model:
        folder = Path(name)
        folder.chmod(0o755)
        with _stage(folder, model) as (hosted, alone):
            for number in range(rounds):
                for turn, (ours, theirs) in seen.items():
                    # What alone does not end takes minutes.
                    if turn == "a stream" or number % 5 == 0:
                        text, tools = _TURNS[turn]
                        hosted.interrupted(text, tools, ours)
                        patience = _PATIENCE * statistics.median(ours.milliseconds) / 1000
                        alone.interrupted(text, tools, max(patience, _PATIENCE_SECONDS_MIN), theirs)
                turns.append(hosted.turns())
                held[0].append(max(own_bytes(pid) for pid in hosted.rest()) / 2**20)
        is_answered, seconds = _hosted_acp(folder / "acp", model)
        patience = max(_PATIENCE_SECONDS_MIN, 10 * seconds)
        is_bare_answered, bytes_held = asyncio.run(
            _bare_acp(peers()[_PEER].program, folder / "acp/hermes", patience)
        )
        held[1].append(bytes_held)
        _left()
    _tell_counts(seen, is_answered, is_bare_answered)
    return [
        *(
            Outcome(
                f"{turn}: interrupt to the next answer's first text",
                ours.milliseconds,
                theirs.milliseconds,
                "ms",
                "at most",
                _GOALS[turn],
            )
            for turn, (ours, theirs) in seen.items()
        ),
        _turn_outcome("CPU of a session's first turn, and of a steady one", turns, "first", 0, 2.5),
        _turn_outcome("CPU of a later fork's first turn, and of a steady one", turns, "forked", 0, 2.5),
        _turn_outcome("a session's first turn, from its opening to its end", turns, "first", 1, None),
        _turn_outcome("a later fork's first turn", turns, "forked", 1, None),
        Outcome("memory of an idle worker, and of hermes acp", *held, "MiB", "at most", 0.4),
    ]


def _turn_outcome(what: str, turns: list[Turns], which: str, clock: int, goal: float | None) -> Outcome:
    """`clock` 0 is CPU time, 1 wall time."""
    ours, steady = [getattr(each, which)[clock] for each in turns], [each.steady[clock] for each in turns]
    return Outcome(what, ours, steady, "ms", "at most", goal)


def _tell_counts(seen: dict[str, tuple[Seen, Seen]], is_answered: bool, is_bare_answered: bool) -> None:
    heads = ["", "hosted: requests", "processes", "alone: requests", "processes", "given up"]
    rows = [
        [
            f"{turn}, {len(ours.milliseconds)} rounds",
            *map(str, (ours.requests, ours.processes, theirs.requests, theirs.processes, theirs.given_up)),
        ]
        for turn, (ours, theirs) in seen.items()
    ]
    table("Requests to the model and processes, after the interrupt", [heads, *rows])
    answers = [[name, "yes" if value else "no"] for name, value in
               (("hosted", is_answered), ("on a bare connection", is_bare_answered))]  # fmt: skip
    table("hermes acp, cancelled during a command", [["", "answers the next prompt"], *answers])


if __name__ == "__main__":
    if outcomes := measure(rounds_asked(ROUNDS)):
        tell(TITLE, outcomes)
