"""A budget of bytes for texts that are told again, newest first.

A turn may have produced more than a frame holds, so what a later attempt is told of it is cut. Texts are
taken newest first, because what happened last matters most. While everything fits, nothing is cut. When it
does not, it is told again by shares: each text may use up to half of what is left, so that a single huge one
leaves room for those before it. A cut keeps the beginning and the end of a text and says between them how
much was left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

# What a text costs beside its own bytes: names of fields and lengths.
_ITEM_BYTES = 128
# A shorter piece of a text says nothing.
_PIECE_BYTES_MIN = 256
_MARK_BYTES = 64

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as it is told. `left_out` characters are missing at `at`, where a mark of `mark` stands."""

    text: str
    at: int = 0
    left_out: int = 0
    mark: int = 0

    def place(self, offset: int) -> int:
        """Where the character is that stood at `offset`; one that was left out is at the mark."""
        if offset <= self.at or not self.left_out:
            return offset
        return max(self.at, offset - self.left_out + self.mark)


class Budget:
    """Counts down. `was_cut` once something was left out, or should have been."""

    def __init__(self, bytes_max: int, *, by_shares: bool = False) -> None:
        self.left = bytes_max
        self.was_cut = False
        self._parts = 2 if by_shares else 1

    @property
    def is_spent(self) -> bool:
        """Whether the next text would be hardly more than a mark."""
        return self.left < 2 * _PIECE_BYTES_MIN

    def take(self, text: str) -> Cut:
        """The text, or its beginning and end, paid for."""
        taken = cut(text, max(_PIECE_BYTES_MIN, self.left // self._parts))
        self.was_cut = self.was_cut or taken.left_out > 0
        self.spend(taken.text)
        return taken

    def spend(self, *texts: str) -> None:
        """Pays for short texts that are never cut."""
        self.left -= sum(len(text.encode()) for text in texts) + _ITEM_BYTES
        self.was_cut = self.was_cut or self.left < 0


def told_within(bytes_max: int, tell: Callable[[Budget], _Told]) -> _Told:
    """What is told: whole where it fits, else by shares."""
    budget = Budget(bytes_max)
    told = tell(budget)
    return tell(Budget(bytes_max, by_shares=True)) if budget.was_cut else told


def cut(text: str, bytes_max: int) -> Cut:
    """At most so many bytes of a text."""
    content = text.encode()
    if len(content) <= bytes_max:
        return Cut(text)
    half = max(0, bytes_max - _MARK_BYTES) // 2
    # A cut may fall into the middle of a character, which then is left out too.
    head = content[:half].decode(errors="ignore")
    tail = content[len(content) - half :].decode(errors="ignore")
    left_out = len(text) - len(head) - len(tail)
    mark = f"[… {left_out} characters left out …]"
    return Cut(head + mark + tail, len(head), left_out, len(mark))
