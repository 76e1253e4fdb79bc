"""Ways to understand a clip, by the model in this process or by a server: words, or the reason why not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from stt_service import guards
from stt_service.containers import Container
from stt_service.engine import Engine, Wish
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
            found = await lane.run(partial(self._engine.listen, segment.samples, wish))
            text = guards.without_loops(guards.without_remarks(found.text))
            if not guards.is_invented(text, found.confidence, found.no_speech, wish.prompt):
                texts.append(text)
                # One clip has one language: a later segment may be too short to tell.
                language = found.language
                wish = replace(wish, language=language)
            tell(segment.until_seconds, " ".join(texts))
        return Transcript(" ".join(texts), language)

    def release(self) -> None:
        self._engine.release()
