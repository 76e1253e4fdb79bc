"""A worker of the kind `hermes`, forked from a rehearsed process that has the stand-in for hermes-agent."""

import sys
from pathlib import Path

from tests.worker.forked_worker import main

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1] / "hermes_double"))
    main("hermes")
