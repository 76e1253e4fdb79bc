"""Takes our own modules out of the interpreter's tables, for agents that bring code of their own.

A user's package may be called `worker` or `ipc`, and what it imports by that name must be its own. So once
everything of ours is imported, our entries leave `sys.modules`, and the folders that ipc/launch.py inserted
leave `sys.path`. Our code runs on: a module that is loaded keeps what it has imported. It only must not
import any more. msgspec and zmq stay loaded, since they are needed further on.
"""

import site
import sys
from pathlib import Path

import msgspec

from ipc.interpreter import OURS, PACKAGES


def set_aside() -> None:
    """Called once, when all that a worker needs of ours is imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    beside = Path(msgspec.__file__).parents[1]
    if beside == PACKAGES:
        return  # this program is installed in this very environment, which the user's code needs
    inserted = {str(PACKAGES), str(beside)} - set(site.getsitepackages())
    sys.path[:] = [folder for folder in sys.path if folder not in inserted]
