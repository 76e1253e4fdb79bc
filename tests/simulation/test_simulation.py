"""The same cruel days in every run: derandomized, so a failure comes back by itself.

HERMES_SIMULATION_EXAMPLES asks for more of them; HERMES_SIMULATION_SHRINK=1 looks for the shortest way to a
failure, which may take minutes.
"""

import os

from hypothesis import HealthCheck, Phase, settings

from tests.simulation.machine import Cruelty

_EXAMPLES = int(os.environ.get("HERMES_SIMULATION_EXAMPLES", "250"))
_SHRINK = (Phase.shrink,) if os.environ.get("HERMES_SIMULATION_SHRINK") else ()

TestCruelty = Cruelty.TestCase
TestCruelty.settings = settings(
    max_examples=_EXAMPLES,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate, *_SHRINK),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
