"""Days of two hosts that share one journal, the same ones in every run.

HERMES_SIMULATION_EXAMPLES asks for more of them.
"""

import asyncio
import os
from random import Random

import pytest

from tests.simulation.two_hosts import TwoHosts

_DAYS = int(os.environ.get("HERMES_SIMULATION_EXAMPLES", "250"))
_STEPS = 300


async def _day(seed: int) -> None:
    """In a loop, because owners are: nothing is left to it."""
    hosts = TwoHosts(Random(seed))
    for _ in range(_STEPS):
        hosts.act()
    hosts.settle()


@pytest.mark.parametrize("part", range(10))
def test_each_message_ends_once_and_each_session_has_one_owner(part: int) -> None:
    for seed in range(part, _DAYS, 10):
        asyncio.run(_day(seed))
