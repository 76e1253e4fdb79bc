"""The same cruel days in every run: derandomized, so a failure comes back by itself.

HERMES_SIMULATION_EXAMPLES asks for more of them; HERMES_SIMULATION_SHRINK=1 looks for the shortest way to a
failure, which may take minutes. Other days in every run, and longer ones: `python -m tests.simulation`.
"""

import os

from tests.simulation.days import days
from tests.simulation.machine import Cruelty

_EXAMPLES = int(os.environ.get("HERMES_SIMULATION_EXAMPLES", "250"))
_SHRINK = bool(os.environ.get("HERMES_SIMULATION_SHRINK"))

TestCruelty = Cruelty.TestCase
TestCruelty.settings = days(_EXAMPLES, derandomize=True, shrink=_SHRINK)
