"""The control groups of this process, from its own up to the root: each may set a limit."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def folders(controller: str, root: Path = ROOT, membership: Path = MEMBERSHIP) -> Iterator[Path]:
    """Yield the folders with a controller's limits: in the one tree of version 2, or in its own tree."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            top = root
        elif controller in controllers.split(","):
            top = root / controllers if (root / controllers).is_dir() else root / controller
        else:
            continue
        own = top / path.strip("/")
        yield from (place for place in (own, *own.parents) if place.is_relative_to(top))


def number(file: Path) -> int | None:
    """Return the number in a file; None where there is none, or no limit."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
