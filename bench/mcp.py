"""Turns of an agent that has MCP servers: one that calls no tool, and the first call after an interrupt.

Two services take turns: one whose agent has two servers, one whose agent has none. The servers are our own
small one, which answers at once, so that nothing but the host's part is measured. An interrupt kills the
servers with the worker; the next turn runs on a spare whose servers are up.
"""

import json
import tempfile
import time
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from tests.acceptance.sight import uses
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

TITLE = "Turns of an agent with MCP servers, beside one without and beside a warm call"
ROUNDS = 25
_WARM_UP = 2
_SOURCE = (Path(__file__).resolve().parents[1] / "tests/tool_server.py").read_text()
_SERVER = "command = " + json.dumps(["/usr/bin/python3", "-c", _SOURCE, "good"])
_WORKERS = "count = 1\nspares = 1"
# Starting a spare with its servers on a busy machine.
_READY_SECONDS_MAX = 4 * DEADLINE_SECONDS


class Talk:
    """One session of a service, turn after turn on its worker."""

    def __init__(self, service: Service, session: str) -> None:
        self._service = service
        self._session = session
        self._listener = service.listen(session)
        self._turns = 0

    def turn(self, text: str) -> float:
        """Milliseconds from the message to the end of its turn, as a client sees them."""
        began = time.perf_counter()
        self._say(text)
        ended = self._listener.ending(f"{self._session}/{self._turns}", _READY_SECONDS_MAX)
        assert ended.type == "turn.done", ended
        return (time.perf_counter() - began) * 1000

    def call(self) -> tuple[float, float]:
        """Milliseconds of a call, from its record to that of its end, and of the turn that makes it."""
        whole = self.turn(uses([("one__add", {"a": 1, "b": 2})]))
        started, finished = _last(self._listener, "tool.started"), _last(self._listener, "tool.finished")
        return (finished - started) * 1000, whole

    def stall(self, text: str = "[[stall tokens=1]]") -> None:
        """Begins a turn, for the next message to interrupt."""
        words = len(self._listener.words)
        self._say(text)
        self._listener.until(lambda: len(self._listener.words) > words, _READY_SECONDS_MAX)

    def rest(self) -> None:
        """Returns when the session's worker and a spare are idle: one that starts takes time from both."""
        until(
            lambda: [row["state"] for row in self._service.show("workers")] == ["idle", "idle"],
            _READY_SECONDS_MAX,
        )

    def _say(self, text: str) -> None:
        self._turns += 1
        self._service.say(self._session, text)


def _last(listener: Listener, kind: str) -> float:
    return listener.of_type(kind)[-1].at


def _add(series: tuple[list[float], list[float]], ours: float, limit: float) -> None:
    series[0].append(ours)
    series[1].append(limit)


def measure(rounds: int) -> list[Outcome]:
    plain: tuple[list[float], list[float]] = ([], [])
    calls: tuple[list[float], list[float]] = ([], [])
    wholes: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as folder, FakeModel() as model:
        servers = {"mcp.one": _SERVER, "mcp.two": _SERVER}
        with (
            Service(Path(folder, "with"), settings_for(model, workers=_WORKERS, **servers)) as having,
            Service(Path(folder, "without"), settings_for(model, workers=_WORKERS)) as lacking,
        ):
            talks = Talk(having, "plain"), Talk(lacking, "plain")
            for number in range(rounds + _WARM_UP):
                pair = [talk.turn("Say a few words, as ever.") for talk in talks]
                if number >= _WARM_UP:
                    _add(plain, *pair)
                else:
                    for talk in talks:
                        talk.rest()
            talk = Talk(having, "calls")
            talk.call()
            for _ in range(rounds):
                talk.rest()
                talk.stall()
                after = talk.call()
                talk.rest()
                warm = talk.call()
                _add(calls, after[0], warm[0])
                _add(wholes, after[1], warm[1])
    return [
        Outcome("a turn that calls no tool, with servers and without", *plain, "ms", "at most", 1.1),
        Outcome("the first call after an interrupt, and a warm one", *calls, "ms", "at most", 1.5),
        Outcome("the turns of these calls, interrupt included", *wholes, "ms", "at most", None),
    ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
