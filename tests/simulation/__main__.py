"""`python -m tests.simulation --minutes 5 --seed 1`: other cruel days in every run; the seed is told.

Days come in batches, and each batch has a seed of its own, counted up from the first. They are longer than
those of `make test`; every fifth batch runs on a real SQLite file. The seed of the batch that failed brings
the failure back: `make soak SEED=…` begins with it.
"""

import argparse
import random
import sys
import time

from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.days import CrueltyOnDisk, days
from tests.simulation.machine import Cruelty

_DAYS, _DAYS_ON_DISK, _STEPS = 40, 4, 200


def play(seed: int) -> None:
    """One batch; raises what a day has shown."""
    if seed % 5 == 0:
        machine, examples = type("DaysOnDisk", (CrueltyOnDisk,), {}), _DAYS_ON_DISK
    else:
        machine, examples = type("Days", (Cruelty,), {}), _DAYS
    run_state_machine_as_test(seeded(seed)(machine), settings=days(examples, _STEPS, derandomize=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simulate cruel days until the time is over.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    until, seed = time.monotonic() + arguments.minutes * 60, arguments.seed
    print(f"simulating for {arguments.minutes:g} minutes from seed {seed}", flush=True)
    while time.monotonic() < until or seed == arguments.seed:
        try:
            play(seed)
        except BaseException:
            print(f"a simulated day failed: `make soak SEED={seed}` repeats it", file=sys.stderr, flush=True)
            raise
        seed += 1
    print(f"simulated {seed - arguments.seed} batches of days, seeds {arguments.seed} to {seed - 1}")
