"""`python -m tests.crash.real_supervisor`: the supervisor with all its processes, killed at a chosen point.

The point is read from a file in its home. Without one it lives on.
"""

import json
import sys
from pathlib import Path

from supervisor import entry
from tests.crash.doomed_supervisor import Doom, watch

DOOM = "doom.json"


def main() -> None:
    home = Path(sys.argv[sys.argv.index("--home") + 1])
    doom = home / DOOM
    if doom.exists():
        watch(Doom(home, **json.loads(doom.read_text())))
    entry.main()


if __name__ == "__main__":
    main()
