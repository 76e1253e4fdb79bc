"""`python -m tests.soak --minutes 5 --seed 1`: a soak of any length; its seed is told, to repeat it."""

import argparse
import random
import tempfile
from functools import partial
from pathlib import Path

from tests.soak.soak import soak

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Break the service at random for a while, then check it all."
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    print(f"soaking for {arguments.minutes:g} minutes with seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(soak(Path(folder), arguments.minutes * 60, arguments.seed, partial(print, flush=True)))
