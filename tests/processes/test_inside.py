"""From inside a cell of namespaces nothing of the supervisor or another worker can be seen or touched."""

import json
import os
from pathlib import Path
from typing import Any

from supervisor.processes import tree
from tests.processes.stage import Stage, play, script

_FAULT = """
def fault(act):
    try:
        return ["did", str(act())]
    except OSError as error:
        return ["refused", error.strerror]
"""
_LOOK = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def umount(path):
    if libc.umount2(path.encode(), 2):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def nested(command):
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", command], capture_output=True, text=True)
    return done.stdout
print(json.dumps({
    "pids": [int(name) for name in os.listdir("/proc") if name.isdigit()],
    "signal": fault(lambda: os.kill(SUPERVISOR, 0)),
    "state": os.listdir(STATE),
    "runtime": os.listdir(RUNTIME),
    "workers": sorted(os.listdir(WORKERS)),
    "journal": fault(lambda: open(STATE + "/journal.db").read()),
    "write": fault(lambda: open(STATE + "/new", "w")),
    "write beside the sockets": fault(lambda: open(WORKERS + "/new", "w")),
    "remove a socket": fault(lambda: os.unlink(WORKERS + "/seat-0.py")),
    "umount": fault(lambda: umount(STATE)),
    "umount proc": fault(lambda: umount("/proc")),
    "nested": nested(
        f"umount -l {STATE}; umount -l /proc; mount --bind {PARENT} /mnt; "
        f"cat {STATE}/journal.db /mnt/*/journal.db"
    ),
    "cgroups": os.listdir("/sys/fs/cgroup"),
    "kernel": fault(lambda: open("/proc/sys/kernel/core_pattern", "w")),
    "descriptors": sorted(os.readlink(f"/proc/self/fd/{number}") for number in range(3)),
    "others": fault(
        lambda: [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) > 2]
    ),
}))
"""


def _seen(stage: Stage) -> dict[str, Any]:
    line = next(line for line in stage.said().splitlines() if line.startswith("{"))
    seen: dict[str, Any] = json.loads(line)
    return seen


def test_nothing_of_the_supervisor_is_within_reach(tmp_path: Path) -> None:
    async def act() -> None:
        home = tmp_path / "home"
        async with Stage(home, "pidns") as stage:
            stage.places.journal.write_text("the journal")
            other = await stage.start(script("subprocess.Popen(['sleep', '1000'])"), seat=1)
            names = {
                "SUPERVISOR": os.getpid(),
                "STATE": str(stage.places.state),
                "RUNTIME": str(stage.places.runtime),
                "WORKERS": str(stage.places.workers),
                "PARENT": str(tmp_path),
            }
            await stage.start(
                script(*(f"{name} = {value!r}" for name, value in names.items()), _FAULT, _LOOK)
            )
            seen = _seen(stage)
            assert seen["pids"] == [1]
            assert seen["signal"] == ["refused", "No such process"]
            # Where the path is too long for sockets, they lie elsewhere.
            has_sockets = stage.places.runtime.is_relative_to(stage.places.state)
            assert seen["state"] == (["run"] if has_sockets else [])
            assert seen["runtime"] == ["workers"]
            assert seen["workers"] == ["seat-0.py", "seat-1.py"]
            assert seen["journal"] == ["refused", "No such file or directory"]
            for attempt in ("write", "write beside the sockets", "remove a socket"):
                assert seen[attempt] == ["refused", "Read-only file system"], attempt
            # Read-only for root, and not root's own for anybody else.
            assert seen["kernel"][0] == "refused"
            assert seen["umount"] == seen["umount proc"] == ["refused", "Operation not permitted"]
            assert seen["nested"] == ""
            assert seen["cgroups"] == []
            assert seen["descriptors"][0] == "/dev/null"
            assert "pidfd" not in str(seen["others"])
            assert "socket" not in str(seen["others"])
            assert other.pid != os.getpid()

    play(act())


def test_its_first_process_cannot_be_killed_from_inside(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            killer = "import os; [os.kill(1, number) for number in (1, 3, 9, 11, 15, 19)]"
            started = await stage.start(
                script(f"subprocess.run([sys.executable, '-c', {killer!r}], check=True)", "os.kill(1, 9)")
            )
            found = tree.status(started.pid)
            assert found is not None
            assert found.is_alive
            assert not found.is_stopped

    play(act())


_TRACER = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, AT_EXIT = 0x4206, 0x40
print("traced" if libc.ptrace(SEIZE, 1, 0, AT_EXIT) == 0 else os.strerror(ctypes.get_errno()), flush=True)
while True:
    signal.pause()
"""


def test_one_who_traces_the_first_process_cannot_hold_up_its_end(tmp_path: Path) -> None:
    """A traced process stops on its way out until its tracer lets it go on, and this one never does."""

    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            started = await stage.start(
                script(
                    "__import__('ctypes').CDLL(None).prctl(0x59616D61, -1, 0, 0, 0)",
                    f"tracer = subprocess.Popen([sys.executable, '-c', {_TRACER!r}], stdout=subprocess.PIPE)",
                    "print(tracer.stdout.readline().decode(), flush=True)",
                )
            )
            assert "traced" in stage.said()
            died = await stage.kill(started.incarnation)
            assert died.proof.all_dead
            assert stage.strangers() == set()

    play(act())
