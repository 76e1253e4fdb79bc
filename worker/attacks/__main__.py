"""`python -m worker.attacks TARGETS`: tries every attack, each in a child of its own, and prints a Trial."""

import json
import os
import select
import signal
import sys

import msgspec

from ipc.isolation import ATTACKS, Result, Targets, Trial
from worker.attacks.attack_table import FUNCTIONS
from worker.attacks.outcome import Outcome

_SECONDS_MAX = 10.0
_SEEN_CHARACTERS_MAX = 300
_SAID_BYTES_MAX = 8192


def main(text: str) -> None:
    targets = msgspec.json.decode(text, type=Targets)
    results = tuple(tried(attack.name, targets) for attack in ATTACKS if attack.name in FUNCTIONS)
    trial = Trial(targets.cell, targets.network, results)
    sys.stdout.write(msgspec.json.encode(trial).decode() + "\n")


def tried(name: str, targets: Targets) -> Result:
    """Runs an attack in a child process, which it may block, crash or change without an effect here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            outcome = FUNCTIONS[name](targets)
        except Exception as error:
            outcome = Outcome("broken", f"{type(error).__name__}: {error}")
        # ASCII: a path need not be text.
        os.write(writing, json.dumps([outcome.verdict, outcome.seen[:_SEEN_CHARACTERS_MAX]]).encode())
        os._exit(0)
    os.close(writing)
    in_time = select.select([reading], [], [], _SECONDS_MAX)[0]
    said = os.read(reading, _SAID_BYTES_MAX) if in_time else b""
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not said:
        return Result(name, "broken", "it did not end by itself" if not in_time else "its process died")
    verdict, seen = json.loads(said)
    return Result(name, verdict, seen.encode(errors="replace").decode())


if __name__ == "__main__":
    main(sys.argv[1])
