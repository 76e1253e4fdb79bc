"""A budget of bytes for the past that a later attempt receives, spent newest first.

A turn may have produced more than a frame holds, so the past of an attempt is cut. Texts are taken newest
first, because the latest ones matter most. While everything fits, nothing is cut. When it does not fit, a
second pass works by shares: each text may use up to half of the bytes that are left, so that a single huge
one leaves space for those before it. A cut keeps the beginning and the end of a text, with a mark between
them that counts the characters left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

# Overhead of a text in a frame: field names and lengths.
_ITEM_BYTES = 128
# A shorter piece of a text is not worth its mark.
_PIECE_BYTES_MIN = 256
_MARK_BYTES = 64

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Cut:
    """A text within a budget. A mark at `at`, `mark` characters long, replaces `left_out` characters."""

    text: str
    at: int = 0
    left_out: int = 0
    mark: int = 0

    def place(self, offset: int) -> int:
        """Return the new position of the character at `offset`; one that was left out maps to the mark."""
        if offset <= self.at or not self.left_out:
            return offset
        return max(self.at, offset - self.left_out + self.mark)


class Budget:
    """Counts bytes down. `was_cut` is set once a text was cut or did not fit."""

    def __init__(self, bytes_max: int, *, by_shares: bool = False) -> None:
        self.left = bytes_max
        self.was_cut = False
        self._parts = 2 if by_shares else 1

    @property
    def is_spent(self) -> bool:
        """Whether the next text would be hardly more than a mark."""
        return self.left < 2 * _PIECE_BYTES_MIN

    def take(self, text: str) -> Cut:
        """Return the text, or its beginning and end, and deduct its bytes."""
        taken = cut(text, max(_PIECE_BYTES_MIN, self.left // self._parts))
        self.was_cut = self.was_cut or taken.left_out > 0
        self.spend(taken.text)
        return taken

    def spend(self, *texts: str) -> None:
        """Deduct short texts that are never cut."""
        self.left -= sum(len(text.encode()) for text in texts) + _ITEM_BYTES
        self.was_cut = self.was_cut or self.left < 0


def told_within(bytes_max: int, tell: Callable[[Budget], _Told]) -> _Told:
    """Run `tell` with whole texts; if they do not fit, run it again by shares."""
    budget = Budget(bytes_max)
    told = tell(budget)
    return tell(Budget(bytes_max, by_shares=True)) if budget.was_cut else told


def cut(text: str, bytes_max: int) -> Cut:
    """Return at most `bytes_max` bytes of a text."""
    content = text.encode()
    if len(content) <= bytes_max:
        return Cut(text)
    half = max(0, bytes_max - _MARK_BYTES) // 2
    # A cut inside a multi-byte character drops that character.
    head = content[:half].decode(errors="ignore")
    tail = content[len(content) - half :].decode(errors="ignore")
    left_out = len(text) - len(head) - len(tail)
    mark = f"[… {left_out} characters left out …]"
    return Cut(head + mark + tail, len(head), left_out, len(mark))
