"""The decoders of this service: a file that kills or wedges one costs that clip, and no other decoder."""

import asyncio
import contextlib
import os

import msgspec

from ipc import interpreter
from stt_service.errors import CannotHear
from stt_service.options import Limits
from stt_service.sound import PREFIX_BYTES, Decoded, Refusal, Sound, lengths, pack

# One clip that is slow to decode must not hold up the next; a third would only wait for a core.
_DECODERS_MAX = 2
# A crash may come from outside (the kernel's memory killer), so a clip is tried once more.
_TRIES = 2
# Read ahead of the reader, per decoder.
_READ_BYTES = 1024 * 1024


class DecoderDied(Exception):
    """The process ended before its answer was complete."""


class DecoderPool:
    """Decodes clips in processes of their own, kept warm for the next clip."""

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
        """A decoder that is ready before the first clip comes."""
        self._idle.append(await _Decoder.start(self._limits))

    async def decode(self, content: bytes) -> Sound:
        """The sound of a clip, or CannotHear with the reason."""
        async with self._slots:
            for _ in range(_TRIES):
                decoder = self._idle.pop() if self._idle else await _Decoder.start(self._limits)
                try:
                    return await self._decode_with(decoder, content)
                except DecoderDied:
                    continue
        raise CannotHear("the clip crashes the decoder", "convert it to another format and send it again")

    async def _decode_with(self, decoder: "_Decoder", content: bytes) -> Sound:
        limit = self._limits.decode_seconds_max
        try:
            async with asyncio.timeout(limit):
                head, samples = await decoder.decode(content)
        except TimeoutError:
            await decoder.end()
            raise CannotHear(
                f"the clip could not be decoded within {limit:g} s", "convert it to another format"
            ) from None
        except BaseException:
            # Forgotten or dead in the middle of a clip: what it still has to say belongs to nobody.
            await decoder.end()
            raise
        self._idle.append(decoder)
        if isinstance(head, Refusal):
            raise CannotHear(head.reason, head.hint)
        return Sound(samples, head.cautions)


class _Decoder:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answer: msgspec.msgpack.Decoder[Refusal | Decoded] = msgspec.msgpack.Decoder(Refusal | Decoded)

    @classmethod
    async def start(cls, limits: Limits) -> "_Decoder":
        """Made by the main thread, whose end would end it."""
        process = await asyncio.create_subprocess_exec(
            *interpreter.command("stt_service.decoder", str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_READ_BYTES,
            cwd=interpreter.WORKING_DIRECTORY,
            env=interpreter.environment(),
        )
        decoder = cls(process)
        # Dead so soon: the first clip finds it so as well, and is given to another one.
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
        """Kills it, drops what it had still to say, and waits until nothing of it is left."""
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
