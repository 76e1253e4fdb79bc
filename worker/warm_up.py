"""Warms a zygote for its forks: loads the kind of its agents and runs one rehearsal turn."""

import gc
from collections.abc import Sequence

from worker import agents


def rehearse(kind: str = agents.BUILTIN, entry: str = "", code: Sequence[str] = ()) -> None:
    """Raises AgentError when no agent of this kind can be had, with its remedy."""
    agents.load(kind, entry, code).rehearse()
    # What is left of the rehearsal may refer to itself in circles; a fork must not inherit its descriptors.
    gc.collect()
