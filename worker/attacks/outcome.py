"""The result of one attack, and how most attacks get it: from the error of their last step."""

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ipc.isolation import Spot, Verdict

# With these the kernel refuses a call as such; any other error means that it examined the arguments.
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    seen: str = ""


def held(seen: str) -> Outcome:
    return Outcome("held", seen)


def opened(seen: str) -> Outcome:
    return Outcome("open", seen)


def absent(why: str) -> Outcome:
    return Outcome("absent", why)


def any_of(tried: Iterable[str], act: Callable[[str], object], nothing: str) -> Outcome:
    """Open if the action succeeds for one of them; otherwise `seen` is the last refusal."""
    refusal = None
    for each in tried:
        try:
            act(each)
        except OSError as error:
            refusal = f"{each}: {error.strerror or error}"
        else:
            return opened(each)
    return absent(nothing) if refusal is None else held(refusal)


def is_there(spot: Spot, path: str = "") -> bool:
    """True when this very file is visible at its path, or at another one."""
    try:
        found = os.stat(path or spot.path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (spot.device, spot.inode)
