"""A worker's end of a line that is closed while its loop goes on."""

import asyncio
from pathlib import Path

from ipc.channel import Channel, connected_pair
from ipc.server import UNSENT_BYTES_MAX
from ipc.sockets import Wire
from ipc.zmtp import Sent
from tests.waiting import soon


def test_a_closed_line_is_forgotten_by_its_loop(tmp_path: Path) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        wire = Wire()
        ours, line = connected_pair(str(tmp_path))
        channel = Channel(ours, lambda parts: None, lambda reason: None, UNSENT_BYTES_MAX)
        opened = wire.line(line.detach(), arrived.append)
        await soon(lambda: channel.send([b"hello"]) is Sent.SENT)
        await soon(lambda: arrived)
        descriptor = opened._descriptor
        opened.close()
        # Its number may be that of another file by now, which the loop must not take for it.
        assert not asyncio.get_running_loop().remove_reader(descriptor)
        channel.close()
        wire.close()

    asyncio.run(talk())
