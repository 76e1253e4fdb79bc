"""A loop that only measures its own lag, as the supervisor does: `python -m bench.idle_loop`.

Beside a busy service it shows how much of a lag is the machine's. For each line on standard input it prints
the delays since the last one, in milliseconds.
"""

import asyncio
import sys

import uvloop

from supervisor.clock import Clock
from supervisor.telemetry.lag import Lag


async def main() -> None:
    delays: list[float] = []
    Lag(Clock(), delays.append).open()
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(" ".join(f"{seconds * 1000:.3f}" for seconds in delays), flush=True)
        delays.clear()


if __name__ == "__main__":
    uvloop.run(main())
