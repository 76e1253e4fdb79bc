"""Run as a module with a models folder: serves the embedded model and prints its pid when that is ready."""

import asyncio
import sys
from pathlib import Path

from supervisor.llm.embedded import embedded_model
from tests.services.watching import running


async def main() -> None:
    async with running(embedded_model(Path(sys.argv[1])).spec) as watched:
        await watched.seen("ready")
        print(watched.row()["pid"], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
