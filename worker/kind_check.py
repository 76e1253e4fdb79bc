"""`python ipc/launch.py worker.kind_check KIND`: imports what a zygote of this kind needs of ours.

`hermesctl agents add` runs it in the interpreter of an agent. The agent's own code is not imported.
"""

import importlib
import sys

from worker.agents import KINDS


def main(kind: str) -> None:
    importlib.import_module("worker.zygote")
    importlib.import_module("worker.worker_main")
    importlib.import_module(KINDS[kind])


if __name__ == "__main__":
    main(sys.argv[1])
