"""Detects the container format of a clip from its first bytes.

FFmpeg gets the format by name. If it guessed the format, a playlist could make it open other files.
"""

from dataclasses import dataclass

from stt_service.errors import CannotTranscribe

ACCEPTED = "send OGG/Opus, m4a, mp3, wav, webm or flac"


@dataclass(frozen=True)
class Container:
    """A container by FFmpeg's name, with the file name and media type that are sent to a server.

    `states_length` is true when the file declares its length; otherwise FFmpeg estimates it from the first
    frames.
    """

    name: str
    file_name: str
    media_type: str
    states_length: bool = True


_OGG = Container("ogg", "clip.ogg", "audio/ogg")
_WAV = Container("wav", "clip.wav", "audio/wav")
_FLAC = Container("flac", "clip.flac", "audio/flac")
_WEBM = Container("matroska", "clip.webm", "audio/webm")
_MP4 = Container("mov", "clip.m4a", "audio/mp4")
_MP3 = Container("mp3", "clip.mp3", "audio/mpeg", states_length=False)
_AAC = Container("aac", "clip.aac", "audio/aac", states_length=False)

# (offset, signature, container)
_SIGNATURES = (
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
_TEXT_BYTES_EXAMINED = 512
# In a WAV file, a size from here on (minus a header) means "not known".
_RIFF_OPEN = 2**32 - 256


def sniff(content: bytes) -> Container:
    """Returns the container of a clip, or raises CannotTranscribe that names the other kind of file."""
    if not content:
        raise CannotTranscribe("the clip is empty", "record it again")
    for offset, signature, container in _SIGNATURES:
        if content.startswith(signature, offset):
            return container
    if content.startswith((b"RIFF", b"RF64")) and content.startswith(b"WAVE", 8):
        return _WAV
    found = _mpeg_audio(content)
    if found is None:
        raise CannotTranscribe(f"the clip is {_describe_other_kind(content)}, not sound", ACCEPTED)
    return found


def cut_short(content: bytes) -> tuple[str, ...]:
    """Returns a caution when the container ends before its declared end, which FFmpeg does not report."""
    if content.startswith(b"RIFF"):
        declared = int.from_bytes(content[4:8], "little") + 8
        # Recorders that write into a pipe leave the size open.
        is_short = len(content) < declared < _RIFF_OPEN
    else:
        last_page = content.rfind(b"OggS")
        is_short = content.startswith(b"OggS") and not content[last_page + 5 : last_page + 6] >= b"\x04"
    return ("the end of the file is missing",) if is_short else ()


def _mpeg_audio(content: bytes) -> Container | None:
    """MPEG frames have no signature but eleven set bits, so layer and rate must be valid as well."""
    if len(content) < 4 or content[0] != 0xFF or content[1] & 0xE0 != 0xE0:
        return None
    if content[1] & 0xF6 == 0xF0:
        return _AAC
    is_layer_3 = content[1] & 0x06 == 0x02
    has_known_rate = content[2] & 0xF0 != 0xF0 and content[2] & 0x0C != 0x0C and content[1] & 0x18 != 0x08
    return _MP3 if is_layer_3 and has_known_rate else None


def _describe_other_kind(content: bytes) -> str:
    for signature, name in _KNOWN_OTHERS:
        if content.startswith(signature):
            return name
    if content.startswith(b"RIFF"):
        return (
            f"a RIFF file of another kind ({content[8:12].decode('ascii', 'replace').strip() or 'unnamed'})"
        )
    start = content[:_TEXT_BYTES_EXAMINED]
    if all(byte >= 0x20 or byte in b"\t\r\n" for byte in start) and _is_text(start):
        return "a text"
    return "a file of a kind unknown here"


def _is_text(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        # A character that is cut by the end of the examined bytes is still text.
        return error.start >= len(start) - 3
    return True
