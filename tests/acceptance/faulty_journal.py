"""`python -m tests.acceptance.faulty_journal`: the supervisor with a journal that breaks, or hangs, on order.

The order is a file beside the journal: `break` raises in the journal's thread what nobody foresees, `hang`
lets a commit wait until the file is gone.
"""

import threading
from collections.abc import Sequence
from pathlib import Path

from supervisor import entry
from supervisor.core.records import Record
from supervisor.journal import journal
from supervisor.journal.writer import Writer

_LOOK_SECONDS = 0.05


class FaultyWriter(Writer):
    def write(self, records: Sequence[Record]) -> None:
        folder = Path(self._journal).parent
        super().write([None] if (folder / "break").exists() else records)  # type: ignore[list-item]
        while (folder / "hang").exists():
            threading.Event().wait(_LOOK_SECONDS)


if __name__ == "__main__":
    journal.Writer = FaultyWriter  # type: ignore[attr-defined]
    entry.main()
