"""Starts interpreters that load no foreign module, whatever folder they are started from.

Python takes code from more places than its own: the working directory (`-m`, `-c`), PYTHONPATH, PYTHONHOME,
the user's site folder with its `.pth` files and `usercustomize`. An agent, or the owner of the current
folder, can write to some of them. Therefore every interpreter process of this program starts with the three
flags below, in a fixed working directory, through ipc/launch.py, and without preloads of the dynamic loader.
The rest is trusted: the standard library, the packages of the environment, and the folder of our own
packages.

A `pip install --user` works: the user's site folder is then the folder of our own packages, which is searched
for modules; its `.pth` files are not executed.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import ipc

# -P: not the working directory. -E: no PYTHON… variable. -s: not the user's site folder.
FLAGS = ("-P", "-E", "-s")
# A folder that exists everywhere and that no agent can write to.
WORKING_DIRECTORY = "/"
# The folder of our packages, not resolved: a user's site folder may consist of links.
PACKAGES = Path(ipc.__file__).absolute().parent.parent
# Our packages in it; the folder may be a checkout, or contain packages of other projects.
OURS = ("client", "gateway", "hermesctl", "ipc", "model_service", "stt_service", "supervisor", "worker")

# Variables that any program needs. No key, and no variable that names code to load, with one exception:
# libraries of a graphics card are found through LD_LIBRARY_PATH.
_COMMON = (
    "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ",
    "USER",
)  # fmt: skip
# Variables that make an interpreter or the dynamic loader load code from the places they name.
_LOADS_CODE = ("PYTHON", "LD_PRELOAD", "LD_AUDIT")


def command(
    module: str, *arguments: str, python: str = sys.executable, path: Iterable[str] = ()
) -> list[str]:
    """Returns the command line for one of our modules; `path` are further folders to search for modules."""
    no_bytecode = ("-B",) if sys.dont_write_bytecode else ()
    launcher = str(PACKAGES / "ipc" / "launch.py")
    return [python, *FLAGS, *no_bytecode, launcher, *(f"+{folder}" for folder in path), module, *arguments]


def environment(*further: str) -> dict[str, str]:
    """Returns the environment of a child: common variables, and further ones by name or `PREFIX_*`."""
    prefixes = tuple(name.removesuffix("*") for name in further if name.endswith("*"))
    return {
        name: value
        for name, value in os.environ.items()
        if name in _COMMON or name in further or (prefixes and name.startswith(prefixes))
    }


def without_code(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the whole environment except the variables that name code to load."""
    return {name: value for name, value in variables.items() if not name.startswith(_LOADS_CODE)}


def isolate(module: str) -> None:
    """Replace this process by an isolated one that runs the same module, unless it is isolated already.

    For entry points that people start in their own way: `python -m supervisor`, or the installed script.
    """
    if not (sys.flags.safe_path and sys.flags.ignore_environment and sys.flags.no_user_site):
        os.execve(sys.executable, command(module, *sys.argv[1:]), without_code(os.environ))
