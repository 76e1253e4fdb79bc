"""Text that cannot act on the terminal it is shown on: the one filter that all output of hermesctl passes.

Sessions, tools, models and file names bring text of strangers. Three kinds of characters in it do more than
stand for themselves:

- Control characters (C0, C1, DEL) and the escape sequences they begin: they move the cursor, set the title,
  write the clipboard (OSC 52), hide what was printed. Each is shown as �. Line breaks and tabs stay.
- Bidirectional formatting (embeddings, overrides, isolates): it shows text in another order, and it
  reaches into what is printed beside it. Each is shown as �. Right-to-left letters need none of it and stay;
  so do the implicit marks (LRM, RLM, ALM) in a line that has such letters.
- Characters without a shape (Default_Ignorable in Unicode): they make two names look the same, and hide text
  in text. They are shown as � unless they do their usual work between two characters beyond ASCII: joiners
  in emoji, Persian and Indic words, word breaks in Thai and Khmer.

Output passes twice. Code that formats a line or a cell calls `neutral`, because widths are counted on what
will be shown. And the standard streams are wrapped (`guard_streams`), so that no writer can forget it: there
only the colours that hermesctl itself prints pass. Programs read `--json`, where the same characters are
escaped as JSON does it, so nothing is lost.
"""

import re
import sys
from typing import Any, TextIO, cast

REPLACEMENT = "�"
# Sequences of colours that hermesctl itself prints; its own text has no other escape.
COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}

# Kept as character classes of regular expressions.
_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI = r"\u202a-\u202e\u2066-\u206f"
# Halves of characters, places that are none, annotations of ruby text, tags.
_NO_TEXT = r"\ud800-\udfff\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
_SHAPELESS = r"\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u3164\ufeff\uffa0"
_MARKS = r"\u061c\u200e\u200f"
_OTHER = r"\r\xad\u2028\u2029"
# The flags of England, Scotland and Wales are a flag and letters in tags.
_FLAG = r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"

_SUSPECT = re.compile(f"{_FLAG}|[{_CONTROLS}{_BIDI}{_NO_TEXT}{_SHAPELESS}{_MARKS}{_OTHER}]")
_SUSPECT_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NEVER_SHOWN = re.compile(f"[{_CONTROLS}{_BIDI}{_NO_TEXT}]")
_RIGHT_TO_LEFT = re.compile(
    r"[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]"
    r"|[\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_OWN_COLOUR = re.compile(rf"(\x1b\[(?:0|{'|'.join(COLOURS.values())})m)")
# Sequences whose meaning depends on the next character.
_UNDECIDED = re.compile(f"(?:[{_SHAPELESS}{_MARKS}]|\U0001f3f4[\U000e0030-\U000e007a]*){{1,32}}\\Z")
# Length of the context within a line that affects the following text.
_CONTEXT_CHARACTERS = 200
# In JSON text these can only stand inside strings, where an escape means the same.
_ESCAPED_IN_JSON = re.compile(f"[{_CONTROLS}{_BIDI}{_NO_TEXT}{_SHAPELESS}{_MARKS}\xad\u2028\u2029]")


def neutral(text: str) -> str:
    """The text as it may be shown."""
    return _from(text, 0)


class Continued:
    """`neutral` for a text that is shown part by part, each part in sight of the line before it."""

    def __init__(self) -> None:
        self._line = ""

    def shown(self, part: str) -> str:
        text = self._line + part
        shown = _from(text, len(self._line))
        self._line = text.rpartition("\n")[2][-_CONTEXT_CHARACTERS:]
        return shown


class Pieces:
    """The same for pieces that are cut anywhere: what depends on the next character waits for it."""

    def __init__(self) -> None:
        self._continued = Continued()
        self._waiting = ""

    def take(self, piece: str) -> str:
        text = self._waiting + piece
        undecided = _UNDECIDED.search(text)
        cut = undecided.start() if undecided else len(text)
        self._waiting = text[cut:]
        return self._continued.shown(text[:cut])

    def end(self) -> str:
        """Returns the rest that was held back."""
        text, self._waiting = self._waiting, ""
        return self._continued.shown(text)


def formatting_characters() -> str:
    """The bidirectional ones, for a screen that has its own way of showing what it must not print."""
    return "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x2070))))


def json_text(value: object, *, indent: int = 0) -> str:
    """A value as JSON that is exact and that a terminal can show."""
    import msgspec

    encoded = msgspec.json.encode(value)
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    return escaped_json(text)


def escaped_json(text: str) -> str:
    """JSON text with an escape for each character that a terminal must not get."""
    return _ESCAPED_IN_JSON.sub(_escape, text)


def guarded(text: str, continued: Continued | None = None) -> str:
    """Neutral but for colours of our own."""
    show = continued.shown if continued else neutral
    if "\x1b" not in text:
        return show(text)
    parts = _OWN_COLOUR.split(text)
    return "".join(part if number % 2 else show(part) for number, part in enumerate(parts))


def guard_streams() -> None:
    """From now on standard output and error pass nothing else. Programs that draw take `sys.__stdout__`."""
    sys.stdout, sys.stderr = (
        stream and cast(TextIO, _Guarded(stream)) for stream in (sys.stdout, sys.stderr)
    )


class _Guarded:
    """A text stream that filters what is written to it, and is the stream itself otherwise."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._continued = Continued()

    def write(self, text: str) -> int:
        # Nothing of ours is coloured where no terminal is.
        filtered = guarded(text, self._continued) if self._stream.isatty() else self._continued.shown(text)
        self._stream.write(filtered)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _from(text: str, begin: int) -> str:
    """The text from there on; what lies before only decides about it."""
    suspect = _SUSPECT_ASCII if text.isascii() else _SUSPECT
    shown: list[str] = []
    at = begin
    for match in suspect.finditer(text, begin):
        shown += (text[at : match.start()], _one(match))
        at = match.end()
    return "".join((*shown, text[at:])) if shown else text[begin:]


def _one(match: re.Match[str]) -> str:
    found, text = match[0], match.string
    if found == "\r":
        return ""
    if found == "\xad":
        return "-"
    if found in "\u2028\u2029":
        return "\n"
    if len(found) > 1:
        return found
    if found in "\u061c\u200e\u200f":
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = text[begin : end if end >= 0 else len(text)]
        return found if _RIGHT_TO_LEFT.search(line) else REPLACEMENT
    if _NEVER_SHOWN.match(found):
        return REPLACEMENT
    around = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return found if all(one > "\x7f" and not _SUSPECT.match(one) for one in around) else REPLACEMENT


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
