"""Events and text of other hosts' sessions, for the subscriptions here.

Problem: a client subscribes at any host, and must see each durable event of a session exactly once and in
order, wherever the session is and wherever it moves. Notices get lost, come twice, and are overtaken by reads
of the journal.

Events: a notice says only how far a session's events go. Subscriptions with fewer read the journal from their
own place on (clients/subscriptions.py), so a notice that is lost or comes twice costs time and nothing else.
Every few seconds, and after each connect, the sessions that are followed here are compared with the journal:
a host may have died between its commit and its notice.

A subscription to all sessions has no place of its own, so this module has one for each session that was told
of. After a cut connection nothing says which other sessions had events meanwhile: these subscriptions end,
and their clients subscribe again, as one that reads too slowly does.

Text: `_Stream` is the text of the open turn of a session, whole from its beginning. A piece that continues it
is passed on. One that begins behind its end says that something was missed: pieces are kept until the journal
has given the text up to there, which it has at most 0.2 s later, and then the whole text goes out at once.
Pieces that came twice, or are of an earlier attempt, change nothing. The stream of a turn that has ended is
forgotten; so is one that is not followed any more.
"""

import asyncio
from collections.abc import Callable, Collection, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ipc import messages as wire
from ipc.codec import encode
from supervisor.core.state import Session, turn_number
from supervisor.journal.asking import Asking
from supervisor.journal.contract import Told

# The journal has streamed text after 0.2 s and a commit.
_TEXT_AGAIN_SECONDS = 0.25
_EVENTS_MAX = 100
_CUT = "the connection to the database was cut"


class Subscriptions(Protocol):
    def followed(self) -> KeysView[str | None]: ...
    def told_elsewhere(self, session: str, seq: int) -> None: ...
    def delta_elsewhere(self, session: str, frame: bytes) -> None: ...
    def publish_elsewhere(self, session: str, events: Sequence[Told]) -> None: ...
    def cut_every(self, reason: str) -> None: ...


class Journal(Protocol):
    """Reads of the journal, made by its threads."""

    def events_after(self, session: str, seq: int, limit: int) -> Sequence[Told]: ...
    def session_seqs(self, sessions: Collection[str]) -> Mapping[str, int]: ...


@dataclass(slots=True)
class _Stream:
    turn: str
    attempt: int
    text: str

    def delta(self, session: str, offset: int = 0) -> wire.Delta:
        return wire.Delta(session, self.turn, self.attempt, offset, self.text[offset:])


@dataclass(frozen=True, slots=True)
class _Piece:
    turn: str
    attempt: int
    offset: int
    text: str


@dataclass(slots=True)
class _Place:
    """How far subscriptions to all sessions have been told of one session, and how far its events go."""

    seq: int
    last: int
    is_asking: bool = False


class RemoteFeed:
    """`is_here` says whether this host has a session: then all of it is told by the engine."""

    def __init__(
        self,
        *,
        subscriptions: Subscriptions,
        journal: Journal,
        wake: Callable[[str], Session | None],
        asking: Asking,
        is_here: Callable[[str], bool],
    ) -> None:
        self._subscriptions = subscriptions
        self._journal = journal
        self._wake = wake
        self._asking = asking
        self._is_here = is_here
        self._loop = asyncio.get_running_loop()
        self._streams: dict[str, _Stream] = {}
        # Sessions whose text is being read, and the pieces that wait for it.
        self._missing: dict[str, list[_Piece]] = {}
        self._places: dict[str, _Place] = {}
        self._was_connected = False

    # --- events -----------------------------------------------------------------------------------------

    def events_told(self, session: str, first: int, last: int, has_ended: bool) -> None:
        """Another host has committed events of a session."""
        if has_ended:
            self._streams.pop(session, None)
            self._missing.pop(session, None)
        self._subscriptions.told_elsewhere(session, last)
        if None in self._subscriptions.followed():
            place = self._places.setdefault(session, _Place(first - 1, last))
            place.last = max(place.last, last)
            self._read(session, place)

    def connected(self) -> None:
        """Notices were missed, unless this is the first connection."""
        if self._was_connected:
            self._subscriptions.cut_every(_CUT)
            self._places.clear()
            self._streams.clear()
            self._missing.clear()
        self._was_connected = True
        self.look()

    def look(self) -> None:
        """Compare the sessions that are followed with the journal."""
        followed = self._subscriptions.followed()
        for kept in (self._streams, self._missing):
            for session in kept.keys() - followed:
                kept.pop(session)
        if None not in followed:
            self._places.clear()
        names = [name for name in followed if name is not None and not self._is_here(name)]
        if names:
            self._asking.ask(lambda: self._journal.session_seqs(names), self._compared, lambda error: None)

    def _compared(self, seqs: Mapping[str, int]) -> None:
        for session, seq in seqs.items():
            self._subscriptions.told_elsewhere(session, seq)

    def _read(self, session: str, place: _Place) -> None:
        if place.is_asking or place.seq >= place.last:
            return
        place.is_asking = True
        seq, count = place.seq, min(_EVENTS_MAX, place.last - place.seq)

        def failed(error: object) -> None:
            place.is_asking = False

        self._asking.ask(
            lambda: self._journal.events_after(session, seq, count),
            lambda events: self._was_read(session, place, events),
            failed,
        )

    def _was_read(self, session: str, place: _Place, events: Sequence[Told]) -> None:
        place.is_asking = False
        if events and self._places.get(session) is place:
            self._subscriptions.publish_elsewhere(session, events)
            place.seq = events[-1].seq
            self._read(session, place)

    # --- text -------------------------------------------------------------------------------------------

    def note_told(self, session: str, turn: str, attempt: int, text: str) -> None:
        self._subscriptions.delta_elsewhere(session, encode(wire.Noted(turn, attempt, text)))

    def text_told(self, session: str, turn: str, attempt: int, offset: int, text: str) -> None:
        followed = self._subscriptions.followed()
        if session not in followed and None not in followed:
            return
        piece = _Piece(turn, attempt, offset, text)
        if session in self._missing:
            self._missing[session].append(piece)
        elif not self._continues(session, piece):
            self._missing[session] = [piece]
            self._ask_text(session)

    def streamed(self, session: str) -> wire.Delta | None:
        """Return the text of the open turn, for a subscription that begins now; it may follow later."""
        stream = self._streams.get(session)
        if stream is not None:
            return stream.delta(session)
        if session not in self._missing:
            self._missing[session] = []
            self._ask_text(session)
        return None

    def _continues(self, session: str, piece: _Piece) -> bool:
        """Add a piece and pass it on; False when something is missing before it."""
        stream = self._streams.get(session)
        if stream is None or turn_number(stream.turn) < turn_number(piece.turn):
            if piece.offset:
                return False
            stream = self._streams[session] = _Stream(piece.turn, piece.attempt, "")
        if stream.turn != piece.turn or piece.attempt < stream.attempt:
            return True  # late: its turn or attempt is over
        if piece.offset > len(stream.text):
            return False
        if piece.attempt > stream.attempt:
            # Text beyond it was streamed and never recorded.
            stream.attempt, stream.text = piece.attempt, stream.text[: piece.offset]
        end = len(stream.text)
        new = piece.text[end - piece.offset :]
        if new:
            stream.text += new
            self._subscriptions.delta_elsewhere(session, encode(stream.delta(session, end)))
        return True

    def _ask_text(self, session: str) -> None:
        pieces = self._missing.get(session)
        if pieces is None:
            return

        def failed(error: object) -> None:
            self._missing.pop(session, None)

        self._asking.ask(
            lambda: self._wake(session), lambda found: self._text_read(session, pieces, found), failed
        )

    def _text_read(self, session: str, pieces: list[_Piece], found: Session | None) -> None:
        """Send the text as the journal has it, then the pieces behind it."""
        if self._missing.get(session) is not pieces:
            return  # the turn has ended meanwhile, or the session is not followed any more
        del self._missing[session]
        turn = found.turn if found else None
        if turn is None or self._is_here(session) or (turn.attempt and turn.attempt.verdict is not None):
            return
        if turn.text:
            stream = self._streams[session] = _Stream(turn.id, turn.attempts, turn.text)
            self._subscriptions.delta_elsewhere(session, encode(stream.delta(session)))
        for number, piece in enumerate(pieces):
            if not self._continues(session, piece):
                self._missing[session] = pieces[number:]
                self._loop.call_later(_TEXT_AGAIN_SECONDS, self._ask_text, session)
                return
