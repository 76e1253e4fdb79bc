"""Processes that outlive an attempt: only residents and what is below them; orphans are swept."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# In a process of its own: `end_all` ends every child of the process that calls it.
SCRIPT = """
import asyncio, os, signal, subprocess, sys
from worker import descendants, residents

def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

descendants.take_in()
# The resident has a child that stays below it, and drops another one to its adopter.
line = "sleep 600 & echo $!; (sleep 600 & echo $!); exec sleep 600"
resident = subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True)
residents.add(resident.pid)
below, dropped = (int(resident.stdout.readline()) for _ in range(2))
other = subprocess.Popen(["sleep", "600"])
while dropped not in descendants.children():
    pass
assert asyncio.run(descendants.end_all())
print(*(is_alive(pid) for pid in (resident.pid, below, dropped, other.pid)))
residents.remove(resident.pid)
assert asyncio.run(descendants.end_all())
print(*(is_alive(pid) for pid in (resident.pid, below)))
print(len(descendants.children()))
"""


def test_a_resident_and_what_is_below_it_outlive_the_attempt_and_an_orphan_of_it_does_not() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert told.returncode == 0, told.stderr
    spared, ended, left = told.stdout.splitlines()
    assert spared == "True True False False"
    assert ended == "False False"
    assert left == "0"
