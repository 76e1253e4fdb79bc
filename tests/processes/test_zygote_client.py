"""The connection to a zygote, with a process that sleeps in the place of its guard."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

from msgspec.structs import replace

from ipc.codec import encode
from ipc.service_messages import Bind, Exited, FromZygote, Sandbox
from supervisor.handoff.carried_workers import HandedWorker
from supervisor.processes.spawner import Spawner
from supervisor.processes.worker_process import Phase, Worker
from supervisor.processes.zygote_client import Zygote
from tests.waiting import soon


class Connected:
    """A connection; `told` are its frames and, last, the status of its guard."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.guard = subprocess.Popen(["sleep", "1000"])
        self.told: list[FromZygote | int] = []
        self.zygote = Zygote(ours, self.guard.pid, self.guard.wait, self.receive, self.told.append)

    def receive(self, message: FromZygote, descriptor: int | None) -> None:
        self.told.append(message)

    async def close(self) -> None:
        if self.guard.returncode is None:
            self.guard.kill()
            self.guard.wait()
            # The connection closes its descriptors when it finds the end of its guard.
            for _ in range(3):
                await asyncio.sleep(0)
        self.theirs.close()


def play(act: Callable[[Connected], Awaitable[None]]) -> None:
    async def scene() -> None:
        connected = Connected()
        try:
            await act(connected)
        finally:
            await connected.close()

    asyncio.run(scene())


def test_what_a_zygote_has_told_before_its_end_is_heard_before_it() -> None:
    async def act(connected: Connected) -> None:
        connected.theirs.send(encode(Exited(7, 3)))
        connected.guard.kill()
        # As if the loop had found the end of the guard first.
        connected.zygote._guard_ended()
        assert connected.told == [Exited(7, 3), -signal.SIGKILL]

    play(act)


def test_a_zygote_that_has_closed_its_end_is_ended_with_its_guard() -> None:
    async def act(connected: Connected) -> None:
        connected.theirs.close()
        await soon(lambda: connected.told)
        assert connected.told == [-signal.SIGTERM]

    play(act)


def test_a_binding_that_could_not_be_sent_is_not_answered_later() -> None:
    async def act(connected: Connected) -> None:
        answers: list[str] = []
        sent = 0
        while connected.zygote.send(Bind(sent, "w"), done=answers.append):
            sent += 1
        connected.zygote.forget(sent)
        assert answers == []
        connected.zygote.forget(0)
        connected.zygote.forget(0)
        assert answers == ["it has ended"]

    play(act)


def test_a_connection_goes_on_in_the_next_image_and_in_no_child_of_it() -> None:
    async def act(connected: Connected) -> None:
        loop = asyncio.get_running_loop()
        former = connected.zygote
        handed = former.hand_over("pidns")
        assert os.get_inheritable(handed.pair)
        assert not loop.remove_reader(handed.pair)
        assert not loop.remove_reader(former._pidfd)
        os.close(former._pidfd)
        connected.zygote = Zygote.take_over(handed, connected.receive, connected.told.append)
        assert not os.get_inheritable(handed.pair)
        connected.theirs.send(encode(Exited(7, 3)))
        await soon(lambda: connected.told)
        connected.zygote.kill()
        await soon(lambda: len(connected.told) == 2)
        connected.guard.wait()
        assert connected.told == [Exited(7, 3), -signal.SIGKILL]

    play(act)


def test_a_worker_goes_to_the_next_image_when_it_runs_and_its_pidfd_to_no_child() -> None:
    pidfd = os.pidfd_open(os.getpid())
    spawner = cast("Spawner", SimpleNamespace(guard=5))
    handed = HandedWorker(1, 2, "/log", 3.0, 0, os.getpid(), 4, pidfd, 5, 6, Sandbox(), "leaf", "workspace")
    os.set_inheritable(pidfd, True)
    try:
        worker = Worker.take_over(handed, spawner)
        assert not os.get_inheritable(pidfd)
        assert worker.hand_over() is None, "its process is not known yet"
        worker.pid = 9
        assert worker.hand_over() == replace(handed, pid=9)
        assert os.get_inheritable(pidfd)
        worker.phase = Phase.ENDING
        assert worker.hand_over() is None
    finally:
        os.close(pidfd)
