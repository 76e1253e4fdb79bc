"""The control groups this process lives in, from its own up to the root: each may set a limit of its own."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def folders(controller: str, root: Path = ROOT, membership: Path = MEMBERSHIP) -> Iterator[Path]:
    """Where the limits of a controller may lie: the one tree of version 2, or the controller's own tree."""
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
    """The number in a file; None where there is none, or no limit."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
