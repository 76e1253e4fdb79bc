"""Programs of this project as processes of tests, without the processor time that their start takes.

    warm.Popen(interpreter.command("supervisor", "--home", home), start_new_session=True)
    warm.run([sys.executable, "-m", "hermesctl", "--home", home, "status"])

The process is forked from one that has imported everything; tests/fork_server.py says what is as after an
exec. What cannot be had that way is executed as usual: another interpreter, an option or a variable that the
interpreter obeys, a user, `preexec_fn`. A test that is about the start itself, or about what is imported,
uses `subprocess`.
"""

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, AnyStr

import msgspec

from ipc import interpreter
from tests.house_rules import ROOT

ORDER_BYTES_MAX = 128 * 1024
DESCRIPTORS_MAX = 16


# The two ways in which an interpreter of ours is started, up to the name of a module: by hand, and isolated.
PLAIN = (sys.executable, "-m")
ISOLATED = tuple(interpreter.command(""))[:-1]
# Has a server of its own, without agents: it is started most often, and agents take a second to import.
HERMESCTL = "hermesctl"


def _obeyed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that an interpreter obeys at its start; the path to this project changes nothing."""
    found = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return {name: value for name, value in found.items() if (name, value) != ("PYTHONPATH", str(ROOT))}


# Before any test changes it.
_ENVIRONMENT = dict(os.environ)


def _start_of(line: tuple[str, ...], environment: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """Which of the two ways this is; empty when it is another.

    Another one is also to take modules from further folders (a plus), or from a working directory that has
    modules of our names in it.
    """
    if not _is_text(line) or not _is_text(environment.values()):
        return ()
    if line[: len(ISOLATED)] == ISOLATED and not line[len(ISOLATED)].startswith("+"):
        return ISOLATED
    if line[: len(PLAIN)] == PLAIN and _obeyed(environment) == _obeyed(_ENVIRONMENT):
        package = line[len(PLAIN)].partition(".")[0]
        return PLAIN if Path(folder) == ROOT or not Path(folder, package).exists() else ()
    return ()


def _is_text(values: Iterable[str]) -> bool:
    """Whether an order can carry them; arguments of a command may be any bytes."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


class Order(msgspec.Struct, frozen=True):
    """A program to become; `places` are the numbers of the descriptors that come along with it."""

    line: tuple[str, ...]
    # The end of the line: a module and its arguments.
    run: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    places: tuple[int, ...]
    new_session: bool
    takes_terminal: bool


class Popen(subprocess.Popen[AnyStr]):
    """Starts a module of ours as a fork; whatever else is started is executed by the base class."""

    takes_terminal = False

    def _start(self, start: tuple[str, ...], order: Order, descriptors: Sequence[int]) -> int | None:
        """The pid; None when it must be executed after all. `start` is the line up to the module."""
        return _server(start, order.run[0] == HERMESCTL).start(order, descriptors)

    def _execute_child(
        self,
        args: Sequence[str],
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Sequence[int],
        cwd: Any,
        env: Any,
        *rest: Any,
    ) -> None:
        """The part of `subprocess.Popen` that makes the process, between making and reading its pipes."""
        _, _, shell, *pipes, _, gid, gids, uid, umask, new_session, group = rest
        environment = dict(os.environ if env is None else env)
        line = tuple(map(str, args))
        folder = os.getcwd() if cwd is None else os.fspath(cwd)
        start = _start_of(line, environment, folder)
        special = (executable, preexec_fn, shell, gid, gids, uid, umask >= 0, group >= 0)
        pid = None
        if start and not any(special):
            order = Order(
                line=line,
                run=line[len(start) :],
                environment=environment,
                folder=folder,
                places=(0, 1, 2, *pass_fds),
                new_session=new_session,
                takes_terminal=self.takes_terminal,
            )
            # The ends of its pipes; -1 where it shares ours.
            theirs = (pipes[0], pipes[3], pipes[5])
            ends: list[int] = [own if end < 0 else end for own, end in enumerate(theirs)]
            pid = self._start(start, order, [*ends, *pass_fds])
        if pid is None:
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest
            )
            return
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class InTerminal(Popen[bytes]):
    """Starts a program whose standard input is its terminal: keys become signals for it alone.

    The terminal that the leader of a new session opens first is its own.
    """

    takes_terminal = True
    _OPENS_IT = "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execvp(sys.argv[1], sys.argv[1:])"

    def __init__(self, line: Sequence[str], terminal: int, env: Mapping[str, str], cwd: Path) -> None:
        if not _start_of(tuple(line), env, str(cwd)):
            line = [sys.executable, "-c", self._OPENS_IT, *line]
        super().__init__(
            line, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, env=env, cwd=cwd
        )


def run(
    command: Sequence[str], *, input: str | None = None, timeout: float | None = None, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """As `subprocess.run` with captured text."""
    pipe = subprocess.PIPE
    if input is not None:
        options["stdin"] = pipe
    with Popen[str](command, stdout=pipe, stderr=pipe, text=True, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class _Server:
    """The process that forks, itself started the way its forks are; it ends with this one."""

    def __init__(self, start: tuple[str, ...], of_hermesctl: bool) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = threading.Lock()
        self._pid = os.getpid()
        with theirs:
            # Pipes: the interpreter remembers of its standard streams whether they can seek, and forks
            # put anything in their places.
            self._process = subprocess.Popen(
                [*start, "tests.fork_server", str(theirs.fileno()), *([HERMESCTL] if of_hermesctl else [])],
                cwd=ROOT,
                env={**_ENVIRONMENT, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def start(self, order: Order, descriptors: Sequence[int]) -> int:
        with self._turn:
            socket.send_fds(self._line, [msgspec.msgpack.encode(order)], list(descriptors))
            answer = self._line.recv(ORDER_BYTES_MAX)
        assert answer, f"the fork server has ended: {self._process.communicate()[0].decode()}"
        return msgspec.msgpack.decode(answer, type=int)

    def close(self) -> None:
        """Not in a fork of the test process: the server is not its child."""
        if os.getpid() == self._pid:
            self._line.close()
            self._process.communicate()


@cache
def _server(start: tuple[str, ...], of_hermesctl: bool) -> _Server:
    return _Server(start, of_hermesctl)
