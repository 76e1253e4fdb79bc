"""msgspec and pyzmq for the interpreter of a peer, as `hermesctl agents add` lays them beside it."""

import shutil
from pathlib import Path

import msgspec
import zmq

from ipc import foreign_python
from ipc.places import find_places


def lay_packages(home: Path, python: str) -> None:
    """From the environment of the tests, whose Python is of the same version."""
    version, _ = foreign_python.version(python)
    folder = Path(foreign_python.folder(find_places(str(home)), version))
    folder.mkdir(parents=True)
    for module in (msgspec, zmq):
        found = Path(module.__file__ or "").parent
        shutil.copytree(found, folder / found.name)
        libraries = found.with_name("pyzmq.libs")
        if module is zmq and libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
