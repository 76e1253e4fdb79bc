"""Which kind of file this is, told by its first bytes alone; FFmpeg never guesses, so it never follows."""

from dataclasses import dataclass

from stt_service.errors import CannotHear

ACCEPTED = "send OGG/Opus, m4a, mp3, wav, webm or flac"


@dataclass(frozen=True)
class Container:
    """FFmpeg's name of a container, and what a server may be told about it.

    `tells_length` says whether its length is written down; elsewhere FFmpeg guesses from the first frames.
    """

    name: str
    file_name: str
    media_type: str
    tells_length: bool = True


_OGG = Container("ogg", "clip.ogg", "audio/ogg")
_WAV = Container("wav", "clip.wav", "audio/wav")
_FLAC = Container("flac", "clip.flac", "audio/flac")
_WEBM = Container("matroska", "clip.webm", "audio/webm")
_MP4 = Container("mov", "clip.m4a", "audio/mp4")
_MP3 = Container("mp3", "clip.mp3", "audio/mpeg", tells_length=False)
_AAC = Container("aac", "clip.aac", "audio/aac", tells_length=False)

# (offset, bytes there, container)
_SIGNS = (
    (0, b"OggS", _OGG),
    (0, b"fLaC", _FLAC),
    (0, b"\x1aE\xdf\xa3", _WEBM),
    (4, b"ftyp", _MP4),
    (0, b"ID3", _MP3),
)
_KNOWN_OTHERS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"%PDF", "a PDF document"),
    (b"MThd", "a MIDI file"),
    (b"\x7fELF", "a program"),
    (b"#EXTM3U", "a playlist"),
    (b"[playlist]", "a playlist"),
    (b"<?xml", "an XML document"),
    (b"ffconcat", "a playlist"),
    (b"v=0", "a session description (SDP)"),
)
_TEXT_BYTES_LOOKED_AT = 512
# Sizes from here on (minus a header) stand for "not known" in a WAV file.
_RIFF_OPEN = 2**32 - 256


def sniff(content: bytes) -> Container:
    """The container of a clip, or CannotHear that says what the file is instead."""
    if not content:
        raise CannotHear("the clip is empty", "record it again")
    for offset, sign, container in _SIGNS:
        if content.startswith(sign, offset):
            return container
    if content.startswith((b"RIFF", b"RF64")) and content.startswith(b"WAVE", 8):
        return _WAV
    found = _mpeg_audio(content)
    if found is None:
        raise CannotHear(f"the clip is {_what_else(content)}, not sound", ACCEPTED)
    return found


def cut_short(content: bytes) -> tuple[str, ...]:
    """A caution for containers that say where they end and do not; FFmpeg takes them for shorter ones."""
    if content.startswith(b"RIFF"):
        told = int.from_bytes(content[4:8], "little") + 8
        # Recorders that write into a pipe leave the size open.
        is_short = len(content) < told < _RIFF_OPEN
    else:
        last_page = content.rfind(b"OggS")
        is_short = content.startswith(b"OggS") and not content[last_page + 5 : last_page + 6] >= b"\x04"
    return ("the end of the file is missing",) if is_short else ()


def _mpeg_audio(content: bytes) -> Container | None:
    """MPEG frames have no sign but eleven set bits; layer and rate must also be ones that exist."""
    if len(content) < 4 or content[0] != 0xFF or content[1] & 0xE0 != 0xE0:
        return None
    if content[1] & 0xF6 == 0xF0:
        return _AAC
    is_layer_3 = content[1] & 0x06 == 0x02
    has_known_rate = content[2] & 0xF0 != 0xF0 and content[2] & 0x0C != 0x0C and content[1] & 0x18 != 0x08
    return _MP3 if is_layer_3 and has_known_rate else None


def _what_else(content: bytes) -> str:
    for sign, name in _KNOWN_OTHERS:
        if content.startswith(sign):
            return name
    if content.startswith(b"RIFF"):
        return (
            f"a RIFF file of another kind ({content[8:12].decode('ascii', 'replace').strip() or 'unnamed'})"
        )
    start = content[:_TEXT_BYTES_LOOKED_AT]
    if all(byte >= 0x20 or byte in b"\t\r\n" for byte in start) and _is_text(start):
        return "a text"
    return "a file of a kind unknown here"


def _is_text(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        # A character cut by the end of what was looked at is still text.
        return error.start >= len(start) - 3
    return True
