"""`python -m tests.acceptance.idle_loop SOCKET`: a loop with nothing to do but to answer every request.

It stands for the supervisor on the same machine at the same time: the same loop and the same half of ZeroMQ,
so what its answers take is what the machine takes.
"""

import asyncio
import sys

import uvloop

from ipc.codec import encode
from ipc.messages import Table
from ipc.server import Server


async def serve(path: str) -> None:
    def answer(parts: list[bytes]) -> None:
        identity, number, _ = parts
        server.send([identity, number, encode(Table(()))])

    server = Server(path, answer)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
