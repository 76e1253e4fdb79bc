"""Interpreters other than our own, in which agents run: their check, and the packages laid beside them.

Nothing is installed in such an interpreter. Its zygote finds msgspec and pyzmq in a folder of the state
directory, one for each version of Python (`hermesctl agents add`), and our own packages where they are.
"""

import os
import subprocess
from collections.abc import Sequence

from ipc.interpreter import FLAGS, PACKAGES, WORKING_DIRECTORY, environment
from ipc.launch import VERSION
from ipc.places import Places

OLDEST = (3, 11)
# The packages that a worker needs of others.
NEEDED = ("msgspec", "pyzmq")
# The start of an interpreter, on a machine that is busy with other work.
_ANSWER_SECONDS_MAX = 20.0
# Searches as ipc/launch.py does. The packages are imported: they may be there for another version of Python.
_QUESTION = f"""
import sys
tag = sys.implementation.cache_tag
sys.path[:0] = [each.replace({VERSION!r}, tag) for each in sys.argv[1:]]
try:
    import msgspec, zmq
    found = "all"
except ImportError:
    found = "none"
print(tag, sys.version_info[0], sys.version_info[1], found)
"""


def folder(places: Places, version: str) -> str:
    """Returns where an interpreter of this version finds the packages; `version` is its cache tag."""
    return str(places.state / "interpreters" / version / "site-packages")


def version(python: str, agent: str = "NAME") -> tuple[str, tuple[str, str]]:
    """Returns the cache tag of the interpreter; or the fault and its remedy."""
    tag, _, fault = _ask(python, (), agent)
    return tag, fault


def fault(python: str, path: Sequence[str], agent: str = "NAME") -> tuple[str, str] | None:
    """Returns why no agent can run in this interpreter, and the remedy; None when one can.

    `path` are the folders of packages laid beside it.
    """
    _, has_packages, found = _ask(python, (*path, str(PACKAGES)), agent)
    if found[0]:
        return found
    if not has_packages:
        return f"{python} has no {' and '.join(NEEDED)} laid beside it", f"run `hermesctl agents add {agent}`"
    return None


def _ask(python: str, path: Sequence[str], agent: str) -> tuple[str, bool, tuple[str, str]]:
    """Returns the cache tag, whether the packages were found, and the fault with its remedy."""
    correct = f"correct python in its table [agents.{agent}] of hermes.toml"
    remedy = f"{correct}, then run `hermesctl agents add {agent}`"
    if not os.path.exists(python):
        return "", False, (f"the interpreter {python} does not exist", remedy)
    if os.path.isdir(python) or not os.access(python, os.X_OK):
        return "", False, (f"{python} is not an executable file", remedy)
    useless = f"{python} cannot be run as a Python interpreter"
    try:
        done = subprocess.run(
            # Without -P: an interpreter that is too old does not know it.
            [python, *(flag for flag in FLAGS if flag != "-P"), "-c", _QUESTION, *path],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS_MAX,
            cwd=WORKING_DIRECTORY,
            env=environment(),
        )
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return "", False, (useless, remedy)
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 4 or not all(word.isdecimal() for word in words[1:3]):
        return "", False, (useless, remedy)
    found = int(words[1]), int(words[2])
    if found < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        fault = f"{python} is Python {words[1]}.{words[2]}, and agents need {oldest} or later"
        return "", False, (fault, remedy)
    return words[0], words[3] == "all", ("", "")
