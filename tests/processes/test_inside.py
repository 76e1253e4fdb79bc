"""What a cell of namespaces can do to itself and to the host: sockets, namespaces, system calls, tracing."""

import os
import socket
from pathlib import Path

import pyseccomp
import pytest

from ipc.service_messages import Sandbox
from supervisor.processes import procfs
from supervisor.processes.seccomp import DENIED
from tests.processes.asking import asked
from tests.processes.stage import Stage, play, script


def test_h2_sockets_of_the_host_cannot_be_reached(tmp_path: Path) -> None:
    async def act() -> None:
        listener, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        name = f"hermes-test-{os.getpid()}"
        with listener, abstract:
            listener.bind(str(tmp_path / "tmux.sock"))
            abstract.bind(f"\0{name}")
            listener.listen()
            abstract.listen()
            async with Stage(tmp_path / "home", "pidns") as stage:
                found = await asked(
                    stage,
                    path=f"connected('{tmp_path}/tmux.sock')",
                    abstract=f"connected('\\0{name}')",
                    bus="connected('/run/dbus/system_bus_socket')",
                    manager="connected('/run/systemd/private')",
                    own_abstract="connected(listening('\\0own'))",
                )
                assert found["path"] == ["refused", "No such file or directory"]
                assert found["abstract"] == ["refused", "Operation not permitted"]
                assert found["bus"] == found["manager"] == ["refused", "No such file or directory"]
                assert found["own_abstract"] == ["did", True]

    play(act())


def test_h3_no_namespace_no_mount_and_no_cgroup_can_be_had(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns", sandbox=Sandbox(level="host")) as stage:
            clone = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "clone")
            spaces = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
            questions = {f"unshare {flag:x}": f"called('unshare', {flag})" for flag in spaces}
            questions |= {
                f"clone {flag:x}": f"called('syscall', {clone}, {flag} | 17, 0, 0, 0, 0)" for flag in spaces
            }
            found = await asked(
                stage,
                **questions,
                clone3="called('syscall', 435, (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17), 88)",
                mount="called('mount', b'none', b'/mnt', b'cgroup2', 0, None)",
                umount="called('umount2', b'/proc', 2)",
                cgroups="os.listdir('/sys/fs/cgroup')",
            )
            assert found.pop("cgroups") == ["did", []]
            assert found.pop("clone3") == ["refused", "Function not implemented"]
            assert all(answer == ["refused", "Operation not permitted"] for answer in found.values()), found

    play(act())


def test_every_denied_call_is_denied_by_the_kernel(tmp_path: Path) -> None:
    """By number, with arguments that would do nothing; those that this architecture lacks are left out."""

    async def act() -> None:
        numbers = {name: pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) for name in DENIED}
        known = {name: number for name, number in numbers.items() if number >= 0}
        assert len(known) > 40
        async with Stage(tmp_path, "pidns") as stage:
            minus = "ctypes.c_long(-1)"
            found = await asked(
                stage,
                **{
                    name: f"called('syscall', {number}, {minus}, {minus}, {minus})"
                    for name, number in known.items()
                },
                io_control="called('ioctl', 0, ctypes.c_ulong(0x5412), b'x')",
                io_control_high="called('ioctl', 0, ctypes.c_ulong(0x700005412), b'x')",
                alg="bool(socket.socket(38, socket.SOCK_SEQPACKET))",
                vsock="bool(socket.socket(40, socket.SOCK_STREAM))",
                packet="bool(socket.socket(17, socket.SOCK_RAW))",
                inet="bool(socket.socket(socket.AF_INET))",
                netlink="bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))",
            )
            assert found.pop("inet") == found.pop("netlink") == ["did", True]
            assert all(answer == ["refused", "Operation not permitted"] for answer in found.values()), found

    play(act())


def test_its_first_process_cannot_be_killed_from_inside(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            killer = "import os; [os.kill(1, number) for number in (1, 3, 9, 11, 15, 19)]"
            started = await stage.start(
                script(f"subprocess.run([sys.executable, '-c', {killer!r}], check=True)", "os.kill(1, 9)")
            )
            found = procfs.status(started.pid)
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


@pytest.mark.parametrize("others", [0, 40])
def test_one_who_traces_the_first_process_cannot_hold_up_its_end(tmp_path: Path, others: int) -> None:
    """A traced process stops on its way out until its tracer lets it go on, and this one never does.

    Among many others the tracer is not killed at the first strike.
    """

    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            started = await stage.start(
                script(
                    "__import__('ctypes').CDLL(None).prctl(0x59616D61, -1, 0, 0, 0)",
                    f"others = [subprocess.Popen(['sleep', '300']) for _ in range({others})]",
                    f"tracer = subprocess.Popen([sys.executable, '-c', {_TRACER!r}], stdout=subprocess.PIPE)",
                    "print(tracer.stdout.readline().decode(), flush=True)",
                )
            )
            assert "traced" in stage.said()
            died = await stage.kill(started.incarnation)
            assert died.proof.all_dead
            assert stage.strangers() == set()

    play(act())
