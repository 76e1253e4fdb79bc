"""Real weights for tests: pulled once by the code of the real command into a cache, then only verified."""

import fcntl
import functools
import os
from pathlib import Path

from hermesctl.weight_catalogue import find, pull
from hermesctl.weight_sources import sources


class _Silent:
    def advance_to(self, received_bytes: int) -> None:
        """Nobody watches."""


@functools.cache
def pulled(name: str) -> Path:
    """The models folder that holds these weights; their checksums are verified once a process."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-supervisor"
    cache.mkdir(parents=True, exist_ok=True)
    # Test processes that run side by side wait for the one that pulls; a second pull would be refused.
    with (cache / "tests.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        pull(find(name), cache / "models", sources(), _Silent(), print)
    return cache / "models"
