"""The decoder processes: a file that crashes or blocks a decoder fails that clip and no other."""

import asyncio
import contextlib
import os

import msgspec

from ipc import interpreter
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from stt_service.sound import PREFIX_BYTES, Decoded, Refusal, Sound, lengths, pack

# Two, because a clip that is slow to decode must not hold up the next; a third would wait for a core.
_DECODERS_MAX = 2
# A crash may have an outside cause (the kernel's OOM killer), so a clip is tried twice.
_TRIES = 2
# Read-ahead buffer of the parent, per decoder.
_READ_BYTES = 1024 * 1024


class DecoderDied(Exception):
    """The process ended before its answer was complete."""


class DecoderPool:
    """Decodes clips in processes of their own, which stay warm for the next clip."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(_DECODERS_MAX)
        self._idle: list[_Decoder] = []

    async def __aenter__(self) -> "DecoderPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            await self._idle.pop().end()

    async def warm_up(self) -> None:
        """Starts a decoder before the first clip arrives."""
        self._idle.append(await _Decoder.start(self._limits))

    async def decode(self, content: bytes) -> Sound:
        """Returns the sound of a clip, or raises CannotTranscribe with the reason."""
        async with self._slots:
            for _ in range(_TRIES):
                decoder = self._idle.pop() if self._idle else await _Decoder.start(self._limits)
                try:
                    return await self._decode_with(decoder, content)
                except DecoderDied:
                    continue
        raise CannotTranscribe(
            "the clip crashes the decoder", "convert it to another format and send it again"
        )

    async def _decode_with(self, decoder: "_Decoder", content: bytes) -> Sound:
        limit = self._limits.decode_seconds_max
        try:
            async with asyncio.timeout(limit):
                head, samples = await decoder.decode(content)
        except TimeoutError:
            await decoder.end()
            raise CannotTranscribe(
                f"the clip could not be decoded within {limit:g} s", "convert it to another format"
            ) from None
        except BaseException:
            # The clip was cancelled or the decoder died: the rest of its output is of no use.
            await decoder.end()
            raise
        self._idle.append(decoder)
        if isinstance(head, Refusal):
            raise CannotTranscribe(head.reason, head.hint)
        return Sound(samples, head.cautions)


class _Decoder:
    """One decoder process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answer: msgspec.msgpack.Decoder[Refusal | Decoded] = msgspec.msgpack.Decoder(Refusal | Decoded)

    @classmethod
    async def start(cls, limits: Limits) -> "_Decoder":
        """Runs in the main thread: the parent-death signal follows the thread that created the process."""
        process = await asyncio.create_subprocess_exec(
            *interpreter.command("stt_service.decoder", str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_READ_BYTES,
            cwd=interpreter.WORKING_DIRECTORY,
            env=interpreter.environment(),
        )
        decoder = cls(process)
        # A decoder that is dead already is noticed by the first clip, which goes to another one.
        with contextlib.suppress(DecoderDied):
            await decoder._send(msgspec.msgpack.encode(limits))
        return decoder

    async def decode(self, content: bytes) -> tuple[Refusal | Decoded, bytes]:
        await self._send(content)
        assert self._process.stdout is not None
        try:
            head, body = lengths(await self._process.stdout.readexactly(PREFIX_BYTES))
            return (
                self._answer.decode(await self._process.stdout.readexactly(head)),
                await self._process.stdout.readexactly(body),
            )
        except asyncio.IncompleteReadError:
            raise DecoderDied from None

    async def end(self) -> None:
        """Kills the process, drops its remaining output, and waits for its exit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._process.stdin.close()
        while await self._process.stdout.read(_READ_BYTES):
            continue
        await self._process.wait()

    async def _send(self, content: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.writelines(pack(content))
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise DecoderDied from None
