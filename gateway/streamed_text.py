"""The text of a session's open turn as far as it was streamed, for readers that join in the middle."""

from ipc.messages import Delta, Event

_ENDS = frozenset({"turn.done", "turn.failed", "turn.interrupted"})


class StreamedText:
    """Joins deltas. After a gap it begins again behind it: the end of the turn brings the whole text."""

    def __init__(self) -> None:
        self._turn = ""
        self._attempt = 0
        self._begin = 0
        self._length = 0
        self._parts: list[str] = []

    def take(self, message: Event | Delta) -> None:
        if isinstance(message, Delta):
            self._append(message)
        elif message.type in _ENDS:
            self._turn, self._parts = "", []
        elif message.type == "attempt.lost" and message.fields.get("turn") == self._turn:
            # The next attempt continues here; what was streamed beyond is void.
            self._cut_to(int(message.fields.get("offset") or 0))

    def delta(self, session: str) -> Delta | None:
        """Everything so far as one delta."""
        text = "".join(self._parts)
        if not self._turn or not text:
            return None
        self._parts = [text]
        return Delta(session, self._turn, self._attempt, self._begin, text)

    def _append(self, delta: Delta) -> None:
        end = self._begin + self._length
        if delta.turn != self._turn or delta.offset > end or delta.offset < self._begin:
            self._turn, self._begin, self._length, self._parts = delta.turn, delta.offset, 0, []
        elif delta.offset < end:
            self._cut_to(delta.offset)
        self._attempt = delta.attempt
        self._parts.append(delta.text)
        self._length += len(delta.text)

    def _cut_to(self, offset: int) -> None:
        text = "".join(self._parts)[: max(0, offset - self._begin)]
        self._parts, self._length = [text], len(text)
