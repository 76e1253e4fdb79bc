"""A supervisor whose disk stops answering as soon as the file named first exists: writes wait, for ever."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from supervisor import entry
from supervisor.core.records import Record
from supervisor.journal import journal
from supervisor.journal.writer import Writer

_mark = Path(sys.argv.pop(1))


class _Stuck(Writer):
    def write(self, records: Sequence[Record]) -> None:
        if _mark.exists():
            threading.Event().wait()
        super().write(records)


if __name__ == "__main__":
    assert hasattr(journal, "Writer")
    journal.Writer = _Stuck
    entry.main()
