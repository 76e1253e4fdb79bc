"""Run as a module: gives up waiting for work that never returns, in a lane that notices after a moment."""

import asyncio
import threading

from stt_service.lanes import Lane


async def main() -> None:
    waiting = asyncio.ensure_future(Lane("stuck", stuck_seconds=0.1).run(threading.Event().wait))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
