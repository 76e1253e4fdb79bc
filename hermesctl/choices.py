"""The choices of a question: how they are numbered, and what a typed line chooses."""

from collections.abc import Iterator, Sequence

_LETTERS = {"y": "yes", "n": "no"}


def numbered(choices: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each choice with the number that chooses it."""
    return enumerate(choices, 1)


def meant_by(typed: str, kind: str, choices: Sequence[str]) -> str:
    """A choice by its own words or its number, yes or no by a letter; anything else says itself."""
    words = typed.strip()
    if words in choices:
        return words
    if words.isdecimal() and 1 <= int(words) <= len(choices):
        return choices[int(words) - 1]
    return _LETTERS.get(words.casefold(), words) if kind == "approve" else words


def ways(kind: str, choices: Sequence[str]) -> str:
    """What may be typed, in a sentence."""
    if kind == "approve":
        return "y or n"
    return "a number or your own words" if choices else "your own words"
