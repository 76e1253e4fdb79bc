"""A child that commits until it is killed and says each number only after its commit has returned."""

import asyncio
import sys
from pathlib import Path

from supervisor.journal.journal import Journal
from tests.journal.lives import accepted


async def sender(journal: Journal, session: str) -> None:
    number = 0
    while True:
        number += 2
        # Two records a commit: after a crash there must be both or neither.
        await journal.commit([accepted(number - 1, session), accepted(number, session)])
        print(session, number, flush=True)


async def main(folder: Path, senders: int) -> None:
    journal = Journal.open(folder / "journal.db", folder / "supervisor.lock")
    await asyncio.gather(*(sender(journal, f"s{each}") for each in range(senders)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
