"""Ways to understand a clip, by the model in this process or by a server: words, or the reason why not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from stt_service import guards
from stt_service.containers import Container
from stt_service.engine import Engine, Understood, Wish
from stt_service.lanes import Lane
from stt_service.segments import Segment
from stt_service.sound import Sound

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
        for segment in segments:
            found = await self._hear_segment(segment, wish, lane)
            text = guards.without_remarks(found.text)
            if guards.overflows(text, found.language, segment.spoken_seconds):
                text = guards.without_loops(text)
            if not guards.is_invented(text, found.confidence, found.no_speech, wish.prompt):
                texts.append(text)
                # One clip has one language: a later segment may be too short to tell.
                language = found.language
                wish = replace(wish, language=language)
            tell(segment.until_seconds, " ".join(texts))
        return Transcript(" ".join(texts), language)

    async def _hear_segment(self, segment: Segment, wish: Wish, lane: Lane) -> Understood:
        """Fast, and again in full when the text is doubtful."""
        samples, spoken_seconds = segment.samples, segment.spoken_seconds
        found = await lane.run(partial(self._engine.listen, samples, wish))
        if guards.is_doubtful(found.text, found.language, spoken_seconds):
            again = await lane.run(partial(self._engine.listen_fully, samples, wish))
            if guards.fits(again.text, again.language, spoken_seconds):
                return again
        return found

    def release(self) -> None:
        self._engine.release()
