"""Resume without loss or repeat: up to which seq each session was read, and through which subscription.

A subscription ends with its connection, by a cut, or on request; its successor begins after the last seq that
was taken. Frames of an ended subscription may still arrive, and may overlap with those of its successor.
Therefore an item counts only under the number of the session's present subscription, and an event only above
the last seq of its session. Deltas and notes have no seq: the number alone decides.

A subscription to all sessions has no place to begin at. After a loss, each session that is behind gets a
subscription of its own beside it, and from then on that one alone counts for the session.
"""

from collections.abc import Mapping

from ipc.messages import Delta, Event, Noted


class Resuming:
    """The places of one reader of a session, or of all."""

    def __init__(self, places: Mapping[str, int] | None = None) -> None:
        self._seqs = dict(places or {})
        self._main = 0
        # Sessions with a subscription of their own; all others come through the main one.
        self._own: dict[str, int] = {}

    def place(self, session: str) -> int:
        """Returns the seq after which the session is to be read."""
        return self._seqs.get(session, 0)

    def move(self, session: str, seq: int) -> None:
        """Reads the session from another place on."""
        self._seqs[session] = seq

    def subscribed(self, number: int, session: str | None = None) -> None:
        """The request of this number is the present subscription, of one session or the main one.

        A new main subscription replaces all others.
        """
        if session is None:
            self._main = number
            self._own.clear()
        else:
            self._own[session] = number

    def numbers(self) -> tuple[int, ...]:
        return self._main, *self._own.values()

    def carried_by(self, number: int) -> tuple[bool, list[str]]:
        """Returns whether this is the main subscription, and the sessions whose own one it is."""
        return number == self._main, [name for name, own in self._own.items() if own == number]

    def behind(self, heads: Mapping[str, int]) -> list[str]:
        """Returns the sessions that have more events than were read, given the last seq of each."""
        return [session for session, head in heads.items() if head > self.place(session)]

    def take(self, number: int, item: Event | Delta | Noted) -> bool:
        """Returns whether the item is new; an event that is moves its session's place."""
        session = item.turn.rpartition("/")[0] if isinstance(item, Noted) else item.session
        if number != self._own.get(session, self._main):
            return False
        if isinstance(item, Event):
            if item.seq <= self.place(session):
                return False
            self._seqs[session] = item.seq
        return True
