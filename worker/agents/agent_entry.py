"""The entry of a python agent, `module:function`: imported once, in the zygote where that is possible.

A fork has no threads of its parent, and shares its sockets. So a module that starts threads or opens sockets
when it is imported must be imported in each worker. Which one it is, is tried out first, in a process of its
own: an import may also end its process, or never return.
"""

import enum
import importlib
import importlib.util
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from worker import log
from worker.errors import AgentError

Function = Callable[[Any], Any]

# Large libraries take seconds, on a busy host a minute; later, workers import the module themselves.
_TRIAL_SECONDS_MAX = 120.0
# A zygote does not know its agents: the supervisor puts their names in place of NAME.
_WHERE = "[agents.{}] entry"


class _Trial(enum.IntEnum):
    """The outcome of an import in a child, which is its exit status."""

    # Workers can share what was imported in the zygote.
    SHARED = 0
    # It left a thread or a socket, or failed in a way that may depend on the turn: workers import it.
    OF_WORKERS = 2
    # There is no such module, or it is no Python: the same everywhere.
    IMPOSSIBLE = 3


def load(entry: str, path: Sequence[str] = (), agent: str = "default") -> Function:
    """Returns the function; AgentError says why it cannot be had, and what to change."""
    _search(path)
    return _function(entry, _WHERE.format(agent))


def _function(entry: str, where: str) -> Function:
    module, _, name = entry.partition(":")
    if not module or not name:
        raise AgentError(f"{where} is {entry!r}", f'write {where} = "package.module:function"')
    found = _import(module, where, entry)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AgentError(
                f"{where} is {entry!r}, and {module} has no {name}",
                f"define {name} there, or correct {where}",
            ) from None
    if not callable(found):
        raise AgentError(
            f"{where} is {entry!r}, which is no function but a value of type {type(found).__name__}",
            f"name a function there that takes a context: def {name}(context)",
        )
    function: Function = found
    return function


def preload(entry: str) -> bool:
    """Imports the entry's module in a zygote, if its workers can share it; returns whether they can.

    AgentError for a module that no worker can import either. Otherwise each worker imports it: what is wrong
    with it there, with the variables and the files that a turn has, is said in its turns.
    """
    sys.dont_write_bytecode = True  # into folders of the user
    module = entry.partition(":")[0]
    match _tried(module):
        case _Trial.SHARED:
            _function(entry, _WHERE.format("NAME"))
            return True
        case _Trial.IMPOSSIBLE:
            _import(module, _WHERE.format("NAME"), entry)
    return False


def _import(module: str, where: str, entry: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module == missing or module.startswith(missing + "."):
            hint = "name the folder that holds it in path of the same table, or correct entry"
        else:
            hint = f"install {missing.partition('.')[0]} into the environment of this agent"
        raise AgentError(f"{where} is {entry!r}, and there is no module {missing}", hint) from None
    except BaseException as error:
        # Anything can happen in a module of someone else, sys.exit() too. Its message may quote a person.
        trace = "".join(traceback.format_tb(error.__traceback__))
        print(trace, type(error).__name__, file=log.stream(), flush=True)
        raise AgentError(
            f"{where} is {entry!r}, and importing {module} raised {type(error).__name__}",
            f"import it by hand to see why: python -c 'import {module}'",
        ) from None


def _search(path: Sequence[str]) -> None:
    """Folders of the user come first, as with PYTHONPATH."""
    sys.path[:0] = [folder for folder in path if folder not in sys.path]
    importlib.invalidate_caches()


def _tried(module: str) -> int:
    """Imports the module in a child, and returns what came of that, as a _Trial or another exit status."""
    child = os.fork()
    if child == 0:
        _try_import(module)
    pidfd = os.pidfd_open(child)
    in_time = select.select([pidfd], [], [], _TRIAL_SECONDS_MAX)[0]
    os.close(pidfd)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _try_import(module: str) -> None:
    """In the child, which ends here with a _Trial as its status."""
    status = _Trial.OF_WORKERS
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (1, 2):
            os.dup2(nothing, standard)
        before = _sockets()
        importlib.import_module(module)
        if threading.active_count() == 1 and _sockets() <= before:
            status = _Trial.SHARED
    except (ModuleNotFoundError, SyntaxError):
        status = _Trial.IMPOSSIBLE
    finally:
        os._exit(status)


def _sockets() -> int:
    folder = "/proc/self/fd"
    names = [f"{folder}/{name}" for name in os.listdir(folder)]
    return sum(os.path.exists(name) and os.readlink(name).startswith("socket:") for name in names)
