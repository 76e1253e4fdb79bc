"""`python -m stt_service.decoder PARENT_PID`: a process that decodes clips and can do nothing else.

Clips come on standard input and samples go to standard output. Before the first clip the process gives up the
right to open files and sockets and to grow beyond its memory limit.
"""

import io
import os
import resource
import sys
import wave
from pathlib import Path
from typing import BinaryIO

import av.logging
import msgspec

from ipc.parent_death import die_with
from stt_service.audio_decoding import decode
from stt_service.errors import CannotTranscribe
from stt_service.options import Limits
from stt_service.sound import PREFIX_BYTES, RATE, Decoded, Refusal, Sound, lengths, pack


def main() -> None:
    die_with(int(sys.argv[1]))
    av.logging.set_level(None)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    limits = msgspec.msgpack.decode(_read_part(requests), type=Limits)
    # Decodes one clip before the limits apply, so that nothing is left to be imported or looked up.
    decode(_quarter_second_of_silence(), limits)
    _close_doors(limits)
    while content := _read_part(requests):
        _answer(answers, content, limits)


def _read_part(stream: BinaryIO) -> bytes:
    """Header and body are one part here: a request has only one of them. Empty at the end of the stream."""
    prefix = stream.read(PREFIX_BYTES)
    return stream.read(sum(lengths(prefix))) if len(prefix) == PREFIX_BYTES else b""


def _answer(stream: BinaryIO, content: bytes, limits: Limits) -> None:
    try:
        sound = decode(content, limits)
    except CannotTranscribe as error:
        sound = Sound(b"")
        head: Refusal | Decoded = Refusal(error.reason, error.hint)
    else:
        head = Decoded(sound.cautions)
    stream.writelines(pack(msgspec.msgpack.encode(head), sound.samples))
    stream.flush()


def _close_doors(limits: Limits) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    address_space = pages * resource.getpagesize() + limits.decode_memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Open descriptors stay open; the process can open no further file or socket.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _quarter_second_of_silence() -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(RATE // 2))
    return content.getvalue()


if __name__ == "__main__":
    main()
