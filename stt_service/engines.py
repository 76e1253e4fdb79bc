"""Ways to understand a clip, by the model in this process or by a server: words, or the reason why not."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from stt_service import transcript_checks
from stt_service.containers import Container
from stt_service.lanes import Lane
from stt_service.segments import Segment
from stt_service.sound import Sound
from stt_service.whisper import Engine, Understood, Wish

# Seconds done, and the text so far.
Tell = Callable[[float, str], None]


@dataclass(frozen=True)
class Clip:
    """A clip as it came and as it was decoded."""

    content: bytes
    kind: Container
    sound: Sound


@dataclass(frozen=True)
class Transcript:
    """Empty when there was nothing to understand after all."""

    text: str
    language: str


class Ears(Protocol):
    """One engine as the service sees it; CannotHear hands the clip to the next one."""

    name: str

    async def hear(
        self, clip: Clip, segments: list[Segment], wish: Wish, lane: Lane, tell: Tell
    ) -> Transcript: ...

    def release(self) -> None: ...


class OwnEars:
    """The model in this process, a segment at a time."""

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self._engine = engine

    async def hear(
        self, clip: Clip, segments: list[Segment], wish: Wish, lane: Lane, tell: Tell
    ) -> Transcript:
        texts: list[str] = []
        language = wish.language or ""
        waiting = deque(segments)
        while waiting:
            segment = waiting.popleft()
            if segment.is_long:
                found = await self._hear_long(segment, wish, lane, partial(_tell_on, tell, texts))
                if found is None:
                    waiting.extendleft(reversed(segment.parts()))
                    continue
            else:
                found = await self._hear_part(segment, wish, lane)
            text = transcript_checks.without_remarks(found.text)
            if transcript_checks.overflows(text, found.language, segment.spoken_seconds):
                text = transcript_checks.without_loops(text)
            if not transcript_checks.is_invented(text, found.confidence, found.no_speech, wish.prompt):
                texts.append(text)
                # One clip has one language: a later segment may be too short to tell.
                language = found.language
                wish = replace(wish, language=language)
            tell(segment.until_seconds, " ".join(texts))
        return Transcript(" ".join(texts), language)

    async def _hear_part(self, segment: Segment, wish: Wish, lane: Lane) -> Understood:
        """Fast, unless the part is known to be doubtful; in full when the text is."""
        samples, spoken_seconds = segment.samples, segment.spoken_seconds
        fast = partial(self._engine.listen, samples, wish)
        found = None if segment.is_doubtful else await lane.run(fast)
        if found and not transcript_checks.is_doubtful(found.text, found.language, spoken_seconds):
            return found
        again = await lane.run(partial(self._engine.listen_fully, samples, wish))
        if transcript_checks.fits(again.text, again.language, spoken_seconds):
            return again
        return found if found is not None else await lane.run(fast)

    async def _hear_long(self, segment: Segment, wish: Wish, lane: Lane, tell: Tell) -> Understood | None:
        """As the library hears it, step by step, for a step in a lane is short; None when it fails."""
        pieces: list[Understood] = []
        steps = self._engine.listen_long(segment.samples, wish)
        while piece := await lane.run(partial(next, steps, None)):
            if piece.has_failed:
                return None
            pieces.append(piece)
            # A stretch has no silence cut out of it, so the piece's times are the clip's.
            done = min(segment.from_seconds + piece.until_seconds, segment.until_seconds)
            tell(done, transcript_checks.without_remarks(" ".join(each.text for each in pieces)))
        if not pieces:
            return None
        return Understood(
            " ".join(piece.text for piece in pieces),
            pieces[0].language,
            max(piece.confidence for piece in pieces),
            min(piece.no_speech for piece in pieces),
        )

    def release(self) -> None:
        self._engine.release()


def _tell_on(tell: Tell, before: list[str], seconds_done: float, text: str) -> None:
    """Told behind the text of the segments before."""
    tell(seconds_done, " ".join([*before, text]))
