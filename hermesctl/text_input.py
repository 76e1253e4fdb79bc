"""The text of a message or an answer: from the command line, or from standard input where it is `-`."""

import re
import sys

import click

from hermesctl.render import aside

# Python's representation of bytes that are not text in the locale's encoding.
_UNDECODED = re.compile("[\ud800-\udfff]")


def typed(text: str) -> str:
    """Returns TEXT. Replaces bytes that are no text, and reports that."""
    words = _standard_input() if text == "-" else clean(text)
    if "�" in words and "�" not in text:
        aside("what is not UTF-8 text was replaced by �")
    return words


def clean(text: str) -> str:
    """The text with a replacement character for each byte that could not be decoded."""
    return _UNDECODED.sub("�", text)


def _standard_input() -> str:
    if sys.stdin is None:
        raise click.UsageError("standard input is closed, so - has nothing to read")
    return sys.stdin.buffer.read().decode(sys.stdin.encoding, "replace")
