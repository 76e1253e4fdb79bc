"""Fifty files that hurt, made by code, each with what must be said of it: a reason, or that it was heard."""

import functools
import gzip
import io
import random
import struct
import zipfile
from collections.abc import Iterator

import numpy as np

from tests.stt_service.sounds import clicks, file_of, music, noise, picture_file, samples_of, silence, tone

# Words that are still there in a damaged copy of a clip.
HEARD = "heard"
NOTHING = "nothing was understood"
# As FFmpeg calls the container of a file that is named otherwise here.
_CONTAINERS = {"webm": "matroska", "mp4": "mov", "m4a": "mov", "id3": "mp3"}


def _unreadable(kind: str) -> str:
    return f"^the {_CONTAINERS.get(kind, kind)} file cannot be read: "


@functools.cache
def hostile_files() -> dict[str, tuple[bytes, str]]:
    """name -> (content, pattern of the reason, or HEARD)"""
    made = dict([*_no_sound_files(), *_signs_and_garbage(), *_lying_waves(), *_damaged(), *_without_speech()])
    assert len(made) >= 50
    return made


def _no_sound_files() -> Iterator[tuple[str, tuple[bytes, str]]]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("clip.ogg", b"OggS")
    others = {
        "a zip archive": archive.getvalue(),
        "a gzip archive": gzip.compress(b"x" * 1000),
        "a 7z archive": b"7z\xbc\xaf\x27\x1c" + bytes(100),
        "a PNG image": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "a JPEG image": b"\xff\xd8\xff\xe0" + bytes(100),
        "a GIF image": b"GIF89a" + bytes(100),
        "a BMP image": b"BM" + bytes(100),
        "a PDF document": b"%PDF-1.7\n" + bytes(100),
        "a MIDI file": b"MThd\x00\x00\x00\x06" + bytes(100),
        "a program": b"\x7fELF" + bytes(100),
        "a playlist": b"#EXTM3U\n#EXTINF:1\nfile:///etc/passwd\n",
        "a session description": b"v=0\r\no=- 0 0 IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 0\r\n",
        "an XML document": b"<?xml version='1.0'?><MPD/>",
        "a text": b"just some words, and no sound at all\n" * 20,
    }
    for name, content in others.items():
        yield name, (content, f"^the clip is {name}")
    yield "a concat script", (b"ffconcat version 1.0\nfile /etc/passwd\n", "^the clip is a playlist")
    yield "nothing", (b"", "^the clip is empty$")
    yield "one byte", (b"O", "^the clip is a text")
    yield "zeros", (bytes(4096), "of a kind unknown here")
    yield "chance", (random.Random(3).randbytes(100_000), "of a kind unknown here")
    yield "another RIFF", (b"RIFF\x24\x00\x00\x00AVI LIST" + bytes(64), r"another kind \(AVI\)")
    yield "video only, mp4", (picture_file("mp4", "mpeg4"), "^the file holds no sound")
    yield "video only, webm", (picture_file("webm", "libvpx"), "^the file holds no sound")


def _signs_and_garbage() -> Iterator[tuple[str, tuple[bytes, str]]]:
    """A true first sign and then chance: FFmpeg is asked, and finds nothing."""
    garbage = random.Random(4).randbytes(50_000)
    signs = {
        "ogg": b"OggS",
        "flac": b"fLaC",
        "webm": b"\x1aE\xdf\xa3",
        "mp4": b"\x00\x00\x00\x18ftypM4A ",
        "mp3": b"\xff\xfb\x90\x00",
        "aac": b"\xff\xf1\x50\x80",
        "id3": b"ID3\x04\x00\x00\x00\x00\x00\x00",
        "wav": b"RIFF\x00\x10\x00\x00WAVE",
    }
    for name, sign in signs.items():
        yield f"{name} and chance", (sign + garbage, _unreadable(name))
        yield f"{name} alone", (sign, _unreadable(name))


def wave(
    rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    form: int = 1,
    size: int | None = None,
    body: bytes = b"",
) -> bytes:
    """A WAV file whose header may say anything."""
    body = body or bytes(32_000)
    align = max(0, channels * bits // 8)
    head = struct.pack("<HHIIHH", form, channels, rate, min(rate * align, 2**32 - 1), align, bits)
    told = len(body) if size is None else size
    return (
        b"RIFF" + struct.pack("<I", min(2**32 - 1, 36 + told)) + b"WAVEfmt " + struct.pack("<I", 16) + head
        + b"data" + struct.pack("<I", told) + body
    )  # fmt: skip


def _lying_waves() -> Iterator[tuple[str, tuple[bytes, str]]]:
    yield "wav at 1 Hz", (wave(rate=1), "^the clip has 1 samples a second")
    yield "wav at 8 Hz", (wave(rate=8), "^the clip has 8 samples a second")
    yield "wav at 0 Hz", (wave(rate=0), _unreadable("wav"))
    yield "wav at 2 GHz", (wave(rate=2**31 - 1), "^the clip has 2,147,483,647 samples a second")
    yield "8 channels at 192 kHz", (wave(192_000, 8, 24), "^the clip has 192,000 samples a second")
    yield "255 channels", (wave(channels=255), "^the clip has 255 channels")
    yield "no channels", (wave(channels=0), "^the clip has 0 channels")
    yield "no bits", (wave(bits=0), _unreadable("wav"))
    yield "an unknown codec", (wave(form=0x1234), _unreadable("wav"))
    yield "a wav that says 37 hours", (wave(size=2**32 - 2), f"^{NOTHING}")
    yield "a wav without data", (wave(size=0), f"^{NOTHING}")
    yield "a flac that says 24 hours", (_flac_of(86_400), "^the clip says it lasts 86,400 s")
    long = file_of(silence(1200), "flac", rate=16_000)
    yield "a flac of twenty minutes", (long, "^the clip says it lasts 1,200 s")
    yield "a flac of twenty minutes that does not say so", (_flac_of(0, long), "^the clip is longer")


def _flac_of(seconds: int, content: bytes = b"") -> bytes:
    """A FLAC file whose first block tells another length (0: none)."""
    content = content or file_of(silence(1), "flac")
    at = content.index(b"fLaC") + 8 + 10
    (form,) = struct.unpack(">Q", content[at : at + 8])
    return content[:at] + struct.pack(">Q", form >> 36 << 36 | seconds * 44_100) + content[at + 8 :]


def _damaged() -> Iterator[tuple[str, tuple[bytes, str]]]:
    speech = samples_of("leisure")
    for kind in ("ogg", "mp3", "webm", "flac", "wav", "aac"):
        whole = file_of(speech, kind)
        yield f"{kind}, its second half lost", (whole[: len(whole) // 2], HEARD)
        yield f"{kind}, cut after 40 bytes", (whole[:40], _unreadable(kind))
    whole = file_of(speech, "m4a")
    yield "m4a, its second half lost", (whole[: len(whole) // 2], _unreadable("m4a"))
    chance = random.Random(5)
    for kind in ("ogg", "mp3", "flac", "webm", "m4a"):
        hurt = bytearray(file_of(speech, kind))
        for _ in range(20):
            hurt[chance.randrange(200, len(hurt))] ^= 0xFF
        yield f"{kind} with twenty flipped bytes", (bytes(hurt), f"{HEARD}|^{NOTHING}")
    mp3 = file_of(speech, "mp3")
    middle = len(mp3) // 3
    yield "mp3 with a hole of chance", (mp3[:middle] + chance.randbytes(4000) + mp3[middle + 4000 :], HEARD)
    yield "two rates in one file", (file_of(speech, "aac") + _aac_at_44_kilohertz(), HEARD)


def _aac_at_44_kilohertz() -> bytes:
    """The same speech, stereo: frames change their form in the middle of the stream."""
    return file_of(samples_of("young_man"), "aac", "stereo", 44_100)


def _without_speech() -> Iterator[tuple[str, tuple[bytes, str]]]:
    sounds = {"silence": silence, "noise": noise, "a tone": tone, "clicks": clicks, "music": music}
    for name, make in sounds.items():
        yield name, (file_of(make(6), "ogg"), f"^{NOTHING}")
    quiet = (samples_of("young_man") // 3000).astype(np.int16)
    yield "speech too faint to hear", (file_of(quiet, "flac"), f"^{NOTHING}")
