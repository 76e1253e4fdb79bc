"""What a zygote does with orders that it cannot carry out, and with kinds of cells that are not wanted."""

import os
import socket
from collections.abc import Iterator

import pytest

from ipc.codec import Decoder
from ipc.service_messages import Bind, Bound, Boundary, CellSpec, Fork, ForkFailed, FromZygote, Prepare
from worker.zygote import Zygote, _Cell

SWEEP = CellSpec("sweep")
_decoder: Decoder[FromZygote] = Decoder(FromZygote)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Zygote]]:
    """The supervisor's end of the line, and the zygote at the other one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        zygote = Zygote(its, Prepare(SWEEP, Boundary()))
        yield ours, zygote
        os.close(zygote._namespace)


def told(ours: socket.socket) -> object:
    return _decoder.decode(ours.recv(65536))


def test_an_order_that_the_kernel_refuses_is_answered_and_leaves_no_descriptor(
    pair: tuple[socket.socket, Zygote],
) -> None:
    ours, zygote = pair
    before = os.listdir("/proc/self/fd")
    passed = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    order = Fork(1, 2, 41, "", CellSpec("cgroup", cgroup="/no/such/cgroup"))
    assert zygote._start(order, passed) is None
    assert told(ours) == ForkFailed(41, "No such file or directory")
    assert os.listdir("/proc/self/fd") == before
    # There is none of this kind to prepare: the cgroup is that of one worker.
    assert zygote._wanted == [SWEEP]


def test_a_binding_for_a_worker_that_has_ended_is_answered(
    pair: tuple[socket.socket, Zygote],
) -> None:
    ours, zygote = pair
    zygote._bind(Bind(41, "/folder"))
    assert told(ours) == Bound(41, "it has ended")


def test_prepared_cells_of_the_kinds_that_were_wanted_last_are_kept(
    pair: tuple[socket.socket, Zygote],
) -> None:
    _, zygote = pair
    kinds = [CellSpec("sweep", files_max=number) for number in range(1, 4)]
    lines = []
    for kind in kinds[:2]:
        worker, line = socket.socketpair()
        lines.append(worker)
        zygote._prepared[kind] = _Cell(1, -1, line, has_mounts=False)
        zygote._want(kind)
    zygote._want(kinds[0])
    zygote._want(kinds[2])
    assert zygote._wanted == [kinds[2], kinds[0]]
    assert list(zygote._prepared) == [kinds[0]]
    # The worker of the other one sees the end of its line.
    lines[1].setblocking(False)
    assert lines[1].recv(1) == b""
    lines[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        lines[0].recv(1)
    zygote._prepared[kinds[0]].line.close()
    for line in lines:
        line.close()
