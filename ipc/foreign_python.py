"""Interpreters other than our own, in which agents run: their check, and the packages laid beside them.

Nothing is installed in such an interpreter. Its zygote finds msgspec and pyzmq in a folder of the state
directory, one for each version of Python (`hermesctl agents add`), and our own packages where they are.
"""

import os
import subprocess

from ipc.interpreter import FLAGS, WORKING_DIRECTORY, environment
from ipc.places import Places

OLDEST = (3, 11)
# The start of an interpreter, on a machine that is busy with other work.
_ANSWER_SECONDS_MAX = 20.0
_QUESTION = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:2])"
_REMEDY = "correct python in its table [agents.NAME] of hermes.toml, then `hermesctl agents add NAME`"


def folder(places: Places, version: str) -> str:
    """Returns where an interpreter of this version finds the packages; `version` is its cache tag."""
    return str(places.state / "interpreters" / version / "site-packages")


def version(python: str) -> tuple[str, tuple[str, str]]:
    """Returns the cache tag of the interpreter; or the fault and its remedy."""
    if not os.path.exists(python):
        return "", (f"the interpreter {python} does not exist", _REMEDY)
    if os.path.isdir(python) or not os.access(python, os.X_OK):
        return "", (f"{python} is not an executable file", _REMEDY)
    try:
        done = subprocess.run(
            # Without -P: an interpreter that is too old does not know it.
            [python, *(flag for flag in FLAGS if flag != "-P"), "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS_MAX,
            cwd=WORKING_DIRECTORY,
            env=environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", (f"{python} cannot be run as a Python interpreter", _REMEDY)
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 3 or not all(word.isdecimal() for word in words[1:]):
        return "", (f"{python} cannot be run as a Python interpreter", _REMEDY)
    found = int(words[1]), int(words[2])
    if found < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return "", (f"{python} is Python {words[1]}.{words[2]}, and agents need {oldest} or later", _REMEDY)
    return words[0], ("", "")


def fault(python: str) -> tuple[str, str] | None:
    """Returns why no agent can run in this interpreter, and the remedy; None when one can."""
    _, found = version(python)
    return found if found[0] else None
