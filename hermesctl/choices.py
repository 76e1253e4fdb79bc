"""The choices of a question: their numbers, and the choice that a typed line means."""

from collections.abc import Iterator, Sequence

_LETTERS = {"y": "yes", "n": "no"}
_ALWAYS = "always"


def numbered(choices: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each choice with the number that chooses it."""
    return enumerate(choices, 1)


def meant_by(typed: str, kind: str, choices: Sequence[str]) -> str:
    """Matches a choice by its text or its number; yes, no and always by a letter.

    Any other line is the answer itself.
    """
    words = typed.strip()
    if words in choices:
        return words
    if words.isdecimal() and 1 <= int(words) <= len(choices):
        return choices[int(words) - 1]
    if kind != "approve":
        return words
    letters = _LETTERS | ({"a": _ALWAYS} if _ALWAYS in choices else {})
    return letters.get(words.casefold(), words)


def ways(kind: str, choices: Sequence[str]) -> str:
    """Returns the possible inputs, in a sentence."""
    if kind == "approve":
        return "y, n, or a for always" if _ALWAYS in choices else "y or n"
    return "a number or your own words" if choices else "your own words"
