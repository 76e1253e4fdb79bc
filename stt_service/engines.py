"""Engines that transcribe a clip: the model in this process, or a remote server."""

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
from stt_service.whisper import ModelOutput, SttModel, TranscribeOptions

# Called with the seconds that are transcribed and the text so far.
Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Clip:
    """A clip as received and as decoded."""

    content: bytes
    kind: Container
    sound: Sound


@dataclass(frozen=True)
class Transcript:
    """`text` is empty when the clip has no words."""

    text: str
    language: str


class SttEngine(Protocol):
    """One engine as the service sees it; on CannotTranscribe the service tries the next engine."""

    name: str

    async def transcribe(
        self, clip: Clip, segments: list[Segment], options: TranscribeOptions, lane: Lane, report: Report
    ) -> Transcript: ...

    def release(self) -> None: ...


class LocalEngine:
    """Transcribes with the model in this process, one segment at a time."""

    def __init__(self, name: str, model: SttModel) -> None:
        self.name = name
        self._model = model

    async def transcribe(
        self, clip: Clip, segments: list[Segment], options: TranscribeOptions, lane: Lane, report: Report
    ) -> Transcript:
        texts: list[str] = []
        language = options.language or ""
        waiting = deque(segments)
        while waiting:
            segment = waiting.popleft()
            if segment.is_long:
                found = await self._transcribe_long(
                    segment, options, lane, partial(_report_after, report, texts)
                )
                if found is None:
                    waiting.extendleft(reversed(segment.parts()))
                    continue
            else:
                found = await self._transcribe_part(segment, options, lane)
            text = transcript_checks.without_remarks(found.text)
            if transcript_checks.overflows(text, found.language, segment.voiced_seconds):
                text = transcript_checks.without_loops(text)
            if not transcript_checks.is_invented(
                text, found.confidence, found.silence_probability, options.prompt
            ):
                texts.append(text)
                # A clip has one language: a later segment may be too short to detect it.
                language = found.language
                options = replace(options, language=language)
            report(segment.until_seconds, " ".join(texts))
        return Transcript(" ".join(texts), language)

    async def _transcribe_part(self, segment: Segment, options: TranscribeOptions, lane: Lane) -> ModelOutput:
        """Uses the fast method, and the full one when the part or its text is doubtful."""
        samples, voiced_seconds = segment.samples, segment.voiced_seconds
        fast = partial(self._model.transcribe_fast, samples, options)
        found = None if segment.is_doubtful else await lane.run(fast)
        if found and not transcript_checks.is_doubtful(found.text, found.language, voiced_seconds):
            return found
        again = await lane.run(partial(self._model.transcribe_full, samples, options))
        if transcript_checks.fits(again.text, again.language, voiced_seconds):
            return again
        return found if found is not None else await lane.run(fast)

    async def _transcribe_long(
        self, segment: Segment, options: TranscribeOptions, lane: Lane, report: Report
    ) -> ModelOutput | None:
        """Uses the library's long-form decoding, one short step of the lane at a time; None when it fails."""
        pieces: list[ModelOutput] = []
        steps = self._model.transcribe_long(segment.samples, options)
        while piece := await lane.run(partial(next, steps, None)):
            if piece.has_failed:
                return None
            pieces.append(piece)
            # No silence is cut out of a stretch, so times in the stretch are times in the clip.
            done = min(segment.from_seconds + piece.until_seconds, segment.until_seconds)
            report(done, transcript_checks.without_remarks(" ".join(each.text for each in pieces)))
        if not pieces:
            return None
        return ModelOutput(
            " ".join(piece.text for piece in pieces),
            pieces[0].language,
            max(piece.confidence for piece in pieces),
            min(piece.silence_probability for piece in pieces),
        )

    def release(self) -> None:
        self._model.release()


def _report_after(report: Report, before: list[str], seconds_done: float, text: str) -> None:
    """Reports the text after that of the earlier segments."""
    report(seconds_done, " ".join([*before, text]))
