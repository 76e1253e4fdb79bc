"""What a test can see of a service from outside: its processes, its workers, who owned what and when."""

import json
import os
import shlex
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ipc.messages import Event
from supervisor.processes import procfs
from tests.service import ENDINGS, Service
from tests.waiting import until

# Doubles its processes until it is refused; where nothing refuses it, it stops at a thousand.
FORK_BOMB = """python3 - <<'END'
import os, time
for _ in range(10):
    try:
        os.fork()
    except BlockingIOError:
        open(os.path.expanduser("~/refused"), "w").close()
time.sleep(300)
END
"""


def shell(command: str, **arguments: Any) -> str:
    """What to say so that the fake model runs this command before it answers `Done.`"""
    return calls([{"command": command, **arguments}])


def calls(*rounds: list[dict[str, Any]]) -> str:
    """The same for several rounds of calls of the shell tool."""
    return uses(*([("shell", call) for call in each] for each in rounds))


def uses(*rounds: list[tuple[str, dict[str, Any]]]) -> str:
    """The same for calls of any tool, by name."""
    scripted = [[{"name": name, "arguments": call} for name, call in each] for each in rounds]
    # Two brackets in a row would end the directive.
    return f"[[tools calls={shlex.quote(json.dumps(scripted).replace(']]', '] ]'))}]] please"


def sleeper(mark: str) -> str:
    """A command that lasts, under a name of the test's own."""
    return f"exec -a {mark} sleep 300"


def named(mark: str) -> set[int]:
    """Live processes under such a name, whatever namespace they are in."""
    beginning = mark.encode()
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    return {int(pid) for pid in pids if _read(f"/proc/{pid}/cmdline").startswith(beginning)}


def descendants(pid: int) -> set[int]:
    """The process and all below it."""
    found, unread = {pid}, [pid]
    while unread:
        tasks = f"/proc/{unread.pop()}/task"
        try:
            threads = os.listdir(tasks)
        except OSError:
            continue
        for thread in threads:
            children = {int(child) for child in _read(f"{tasks}/{thread}/children").split()} - found
            found |= children
            unread += children
    return found


def _read(path: str) -> bytes:
    """A file of /proc, empty when its process is gone. Tests look often, and pathlib takes thrice as long."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def alive(pids: Iterable[int]) -> set[int]:
    """Those that can still act. One that has ended and was not yet reaped cannot."""
    found = ((pid, procfs.status(pid)) for pid in pids)
    return {pid for pid, status in found if status is not None and status.is_alive}


def state_of(pid: int) -> str:
    """One letter, as ps shows it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def worker_of(service: Service, session: str) -> int:
    """The pid of the worker that has this session's running turn."""

    def found() -> int:
        rows = [row for row in service.show("workers") if row["session"] == session and row["turn"]]
        return rows[0]["pid"] or 0 if rows and rows[0]["state"] == "busy" else 0

    return until(found)


def zygote_of(service: Service) -> int:
    """The only child of the guard, which is the one child of the supervisor that runs worker.zygote."""
    assert service.process is not None
    folder = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
    for child in folder.read_text().split():
        if b"worker.zygote" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(Path(f"/proc/{child}/task/{child}/children").read_text())
    raise AssertionError("there is no zygote")


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Holds a process still: whatever happens meanwhile reaches it all at once."""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: state_of(pid) == "T")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def worker_logs(service: Service) -> str:
    return "".join(path.read_text() for path in service.places.logs.glob("worker-*.log"))


def memory_of(service: Service) -> int:
    assert service.process is not None
    return int(Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]) * 4096


def check_one_owner(events: Iterable[Event]) -> None:
    """No attempt of a session opens while another one is open, and none after its turn has ended."""
    open_attempt: dict[str, tuple[str, int]] = {}
    ended: set[str] = set()
    for event in events:
        turn = event.fields.get("turn", "")
        if event.type == "attempt.opened":
            assert event.session not in open_attempt, f"{turn} opened beside {open_attempt[event.session]}"
            assert turn not in ended
            open_attempt[event.session] = (turn, event.fields["attempt"])
        elif event.type in (*ENDINGS, "attempt.lost", "question.asked"):
            open_attempt.pop(event.session, None)
        if event.type in ENDINGS:
            assert turn not in ended, f"{turn} ended twice"
            ended.add(turn)


def check_one_session_a_process(events: Iterable[Event]) -> None:
    """No process works for two turns at the same time."""
    spans: dict[int, list[tuple[float, float]]] = {}
    began: dict[str, tuple[int, float]] = {}
    for event in sorted(events, key=lambda event: event.at):
        turn = event.fields.get("turn", "")
        if event.type == "attempt.opened":
            began[turn] = (event.fields["pid"], event.at)
        elif event.type in (*ENDINGS, "attempt.lost", "question.asked") and turn in began:
            pid, at = began.pop(turn)
            spans.setdefault(pid, []).append((at, event.at))
    for pid, times in spans.items():
        for (_, end), (begin, _) in zip(sorted(times), sorted(times)[1:], strict=False):
            assert end <= begin, f"process {pid} had two turns at once"
