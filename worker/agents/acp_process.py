"""The process of an ACP agent: started like a command, and lines of JSON on its pipes.

It is a resident of its worker: it outlives attempts, and ends with the cell. Its stdout is the protocol
and nothing else; a line that is no JSON object is dropped and counted. Of its stderr only the end is
kept, for the sentence that says why it failed: it may quote a person, so it never reaches a log.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from worker import descendants, residents
from worker.errors import AgentError
from worker.tools import spawn

# One line: a tool's whole output, or a picture; a longer one is no message.
_LINE_BYTES_MAX = 16 * 1024 * 1024
# Programs greet before they speak the protocol; more lines than this are not a greeting.
_STRAY_LINES_MAX = 50
_ERRORS_BYTES_MAX = 4096
_ERRORS_CHARACTERS_SHOWN = 200
_READ_BYTES = 65_536
# Of a process that has ended: what it wrote before is in the pipes, unless its children hold them.
_DRAIN_SECONDS = 0.2


class AgentProcess:
    """Runs from its construction on; a Transport of the SDK. `secrets` are values that no sentence shows."""

    def __init__(
        self, line: Sequence[str], folder: str, environment: Mapping[str, str], secrets: Sequence[str] = ()
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.program = line[0]
        # The longest first: of one that begins with another the rest would be shown.
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        self._process = _start(line, folder, environment)
        self._pid = self._process.pid
        descendants.claim(self._pid)
        residents.add(self._pid)
        self._errors = b""
        self._reader = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
        self._writer: asyncio.StreamWriter | None = None
        self._open = asyncio.Event()
        self._open.set()
        self.stray_lines = 0
        self.has_spoken = False
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()  # its pipes are, too
        self._pipes: list[asyncio.BaseTransport] = []
        self._pidfd = os.pidfd_open(self._pid)
        self._loop.add_reader(self._pidfd, self._exited)
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        self._loop.add_reader(self._process.stderr.fileno(), self._read_errors)

    async def connect(self) -> None:
        """Opens the pipes for `send` and `receive`."""
        process = self._process
        reading, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader, loop=self._loop), process.stdout
        )
        transport, protocol = await self._loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(self._loop), process.stdin
        )
        self._writer = asyncio.StreamWriter(transport, protocol, None, self._loop)
        self._pipes = [reading, transport]

    async def send(self, message: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Returns the next message; None at the end, and when what comes is not the protocol."""
        while True:
            await self._open.wait()
            try:
                line = await self._reader.readline()
            except ValueError:
                self.kill()
                return None
            if not line:
                return None
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                self.has_spoken = True
                return message
            if line.strip():
                self.stray_lines += 1
            if self.stray_lines > _STRAY_LINES_MAX and not self.has_spoken:
                return None

    async def close(self) -> None:
        self.kill()

    def pause(self, is_full: bool) -> None:
        """Stops reading while the messages read so far are not handled: the pipe holds the agent back."""
        if is_full:
            self._open.clear()
        else:
            self._open.set()

    def kill(self) -> None:
        """Ends it and its process group; its other descendants end as orphans do."""
        residents.remove(self._pid)
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def outcome(self) -> str:
        """Says how it ended, with its last words on stderr."""
        status = self._process.returncode
        if status is None:
            ending = "closed its output"
        elif status >= 0:
            ending = f"exited with status {status}"
        else:
            ending = f"was ended by signal {-status}"
        return ending + (f", saying: {words}" if (words := self._last_words()) else "")

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines() if line.strip()]
        words = lines[-1] if lines else ""
        for secret in self._secrets:
            words = words.replace(secret, "…")
        return "".join(c for c in words if c.isprintable())[:_ERRORS_CHARACTERS_SHOWN]

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        try:
            content = os.read(self._process.stderr.fileno(), _READ_BYTES)
        except BlockingIOError:
            return
        self._errors = (self._errors + content)[-_ERRORS_BYTES_MAX:]
        if not content:
            self._close_errors()

    def _close_errors(self) -> None:
        if self._process.stderr is not None and not self._process.stderr.closed:
            self._loop.remove_reader(self._process.stderr.fileno())
            self._process.stderr.close()

    def _exited(self) -> None:
        self._process.poll()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        residents.remove(self._pid)
        descendants.let_go(self._pid)
        # Its children may hold the pipe open; nothing that they write is of the protocol.
        self._loop.call_later(_DRAIN_SECONDS, self._close_pipes)
        self.ended.set()

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        if not self._pipes:
            for file in (self._process.stdin, self._process.stdout):
                if file is not None:
                    file.close()
        self._close_errors()
        self._reader.feed_eof()
        self.closed.set()


def _start(line: Sequence[str], folder: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return spawn.start_piped(line, environment=environment, folder=folder, errors=subprocess.PIPE)
    except FileNotFoundError:
        fault = f"there is no program {line[0]!r} in the agent's cell"
    except PermissionError:
        fault = f"the program {line[0]!r} may not be executed by the agent's user"
    except OSError as error:
        fault = f"the program {line[0]!r} cannot be started ({error.strerror})"
    raise AgentError(
        fault, "install it where [sandbox] shows it, or write its whole path as the first word of `command`"
    )
