"""`python -m tests.fuzz --frames 200000`: so many changed frames at the control and the worker socket."""

import argparse
import tempfile
from pathlib import Path
from typing import Protocol

from bench.pretend import pretend_service
from tests.fake_model import FakeModel
from tests.fuzz.at_control import Storm
from tests.fuzz.at_workers import PlayedWorkers
from tests.service import Service, settings_for

_AT_ONCE = 2000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    half = options.frames // 2
    with tempfile.TemporaryDirectory() as folder:
        with (
            FakeModel() as model,
            Service(Path(folder) / "home", settings_for(model, workers="count = 1")) as service,
            Storm(service) as storm,
        ):
            _run("control", half, options.seed, storm)
        pretended = Path(folder) / "pretended"
        with pretend_service(pretended, 1) as (places, pid), PlayedWorkers(places, pid) as workers:
            _run("workers", half, options.seed, workers)
            print(f"workers: {workers.killed} were killed for what they sent")


class Target(Protocol):
    """Where frames are sent."""

    def send_changed(self, seed: int, count: int) -> None: ...
    def check_alive(self) -> None: ...
    def memory_bytes(self) -> int: ...


def _run(name: str, count: int, seed: int, target: Target) -> None:
    for start in range(0, count, _AT_ONCE):
        target.send_changed(seed + start, min(_AT_ONCE, count - start))
        target.check_alive()
        print(f"{name}: {start + _AT_ONCE} frames, {target.memory_bytes() / 2**20:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
