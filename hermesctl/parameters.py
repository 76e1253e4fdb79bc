"""Kinds of options and arguments: each gives the keywords of `click.option` or `click.argument`.

click's own types fail in click's terms ("is not a valid integer range"). A failure here completes the
sentence that begins with the parameter's name: "--limit takes a whole number from 1 to 10,000, not …".
`hermesctl.usage_errors` puts the name in front.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Kind = dict[str, Any]
_Value = TypeVar("_Value")

# As hermes.toml writes them (`supervisor.config.fields`); a test compares the two.
_DURATION = re.compile(r"(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?|\d+")
_SIZE = re.compile(r"\d+ ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)|\d+")
_UNBOUNDED_SECONDS = 1e9


def whole(least: int, most: int, metavar: str = "N") -> Kind:
    """A whole number within bounds."""

    def convert(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text) and least <= int(text) <= most:
            return int(text)
        raise click.BadParameter(f"takes a whole number from {least} to {most:,}, not {quoted(text)}")

    return {"type": _from_text(convert), "metavar": metavar}


def seconds(least: float, most: float = _UNBOUNDED_SECONDS, metavar: str = "SECONDS") -> Kind:
    """A number of seconds within bounds."""
    bounds = f", {least:g} or more" if most == _UNBOUNDED_SECONDS else f" from {least:g} to {most:g}"

    def convert(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if least <= found <= most:
            return found
        raise click.BadParameter(f"takes a number of seconds{bounds}, not {quoted(text)}")

    return {"type": _from_text(convert), "metavar": metavar}


def one_of(words: Sequence[str], metavar: str = "") -> Kind:
    """One of a few words."""

    def convert(text: str) -> str:
        if text in words:
            return text
        import difflib

        near = difflib.get_close_matches(text, words, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise click.BadParameter(f"is {listed(words)}, not {quoted(text)}{meant}")

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in words if word.startswith(begun)]

    return {"type": _from_text(convert), "metavar": metavar or "|".join(words), "shell_complete": complete}


def duration() -> Kind:
    """A duration as hermes.toml has them, passed on as it was written."""
    return _written(_DURATION, "a duration such as 30d, 12h or 90s", "AGE")


def size() -> Kind:
    """A size as hermes.toml has them, passed on as it was written."""
    return _written(_SIZE, "a size such as 512MB or 1GiB", "SIZE")


def file(metavar: str = "FILE") -> Kind:
    """A path; the shell completes it."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(begun, type="file")]

    return {"type": _from_text(_not_empty), "metavar": metavar, "shell_complete": complete}


def name(metavar: str) -> Kind:
    """A name, a key or an id: not empty, and text that a frame can carry."""

    def convert(text: str) -> str:
        if not is_utf8(text):
            raise click.BadParameter(f"is not UTF-8 text: {quoted(text)}")
        return _not_empty(text)

    return {"type": _from_text(convert), "metavar": metavar}


def is_utf8(text: str) -> bool:
    """Python keeps a byte that is not UTF-8 as an unpaired surrogate, which cannot be encoded again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def quoted(text: str) -> str:
    """Quotes a value in a sentence: short, on one line, and printable."""
    from hermesctl.render import cut, one_line

    return f"“{cut(one_line(text.encode(errors='replace').decode()), 40)}”"


def listed(words: Sequence[str]) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _written(notation: "re.Pattern[str]", wanted: str, metavar: str) -> Kind:
    def convert(text: str) -> str:
        if notation.fullmatch(text) and re.search("[1-9]", text):
            return text
        raise click.BadParameter(f"takes {wanted}, not {quoted(text)}")

    return {"type": _from_text(convert), "metavar": metavar}


def _not_empty(text: str) -> str:
    if not text.strip():
        raise click.BadParameter("is empty")
    return text


def _from_text(convert: Callable[[str], _Value]) -> Callable[[Any], Any]:
    """Defaults and the value of a bare flag are no texts and pass unchanged."""
    return lambda value: convert(value) if isinstance(value, str) else value
