"""What cells must not see: the supervisor's own folders, but for what a worker runs on."""

import sys
from pathlib import Path

from ipc.endpoints import Places


def outermost(folders: tuple[Path, ...]) -> tuple[str, ...]:
    """The folders without those that lie in another of them."""
    real = {folder.resolve() for folder in folders}
    return tuple(sorted(str(folder) for folder in real if not real & set(folder.parents)))


def shown(places: Places, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """The sockets of the workers, and what they run on where that lies in a hidden folder."""
    packages = Path(__file__).resolve().parents[2]
    programs = (Path(sys.prefix), Path(sys.base_prefix), packages / "ipc", packages / "worker")
    below = {str(path) for path in programs if any(Path(folder) in path.parents for folder in hidden)}
    return (str(places.workers.resolve()), *sorted(below))
