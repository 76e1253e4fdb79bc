"""Transcription: clips are sent to the STT service, retried when it dies, ended at their deadline.

Every clip of a message ends as Transcribed or NotTranscribed, unless it is forgotten. A clip may also come
alone: then its client gets the transcript, nothing is recorded, and its file is removed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ipc import messages
from ipc import stt_messages as wire
from ipc.codec import encode
from ipc.zmtp import Sent
from supervisor.config.live import Live
from supervisor.core import events
from supervisor.core.effects import ForgetClip, Transcribe
from supervisor.services.service import ServiceChanged
from supervisor.services.services import Services
from supervisor.stt import stt_spec
from supervisor.stt.shared_clips import SharedClips

# A clip that has ended two processes would end every further one.
_TRIES_MAX = 2
# The service enforces a clip's deadline itself; after this grace it is considered unable to.
_GRACE_SECONDS = 3.0
# A shorter clip is transcribed in one step: its progress would only repeat its transcript.
_LONG_SECONDS = 30.0
# The end of a long clip's transcript so far: it fits a note, and the rest was sent before.
_PROGRESS_CHARACTERS = 3000
_OFF = ("voice is switched off", "set [stt] engine in hermes.toml, then `hermesctl reload`")
_KEPT = "the clip is kept; send it again, or `hermesctl retry {message}` when the cause is fixed"


# Clips that are no messages, at once: more would only wait for each other.
_APART_MAX = 32
_RETRY_SECONDS = 5.0
_FETCH_AGAIN_SECONDS = 1.0

Reply = Callable[[messages.Answer], None]


@dataclass(slots=True)
class _Clip:
    """One clip without a transcript yet."""

    session: str
    message: str
    path: Path
    tries: int = 0
    is_sent: bool = False
    is_begun: bool = False
    # The count of the service's frames when the clip's time began.
    news: int = 0
    deadline: asyncio.TimerHandle | None = None
    # Of a clip that is no message: those who wait for its transcript.
    replies: list[Reply] = field(default_factory=list)

    @property
    def advice(self) -> str:
        return "send it again" if self.replies else _KEPT.format(message=self.message)


class Transcription:
    """The clips in progress and the STT service that transcribes them."""

    def __init__(
        self,
        *,
        live: Live,
        clips: Path,
        post: Callable[[events.Event], None],
        progress: Callable[[str, str, str], None],
        shared: SharedClips | None = None,
    ) -> None:
        """`progress` gets a session, a message and the state of its clip; `shared` clips are of any host."""
        self._shared = shared
        # Messages whose clips are being read from the journal.
        self._fetching: set[str] = set()
        self._live = live
        self._folder = clips
        self._post = post
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._clips: dict[str, _Clip] = {}
        self._is_ready = False
        self._fault: tuple[str, str] | None = None
        self._news = 0
        self._was_ended = False
        self.was_used = False

    def open(self, services: Services) -> None:
        self._services = services

    @property
    def fault(self) -> tuple[str, str] | None:
        """Return why no clip can be transcribed, and a hint."""
        return self._fault

    def transcribe(self, effect: Transcribe) -> None:
        clip = _Clip(effect.session, effect.message, self._folder / effect.clip)
        if self._shared is None or self._shared.is_here(effect.clip):
            self._begin(clip)
        else:
            self._fetching.add(clip.message)
            self._fetch(clip, self._shared)

    def _fetch(self, clip: _Clip, shared: SharedClips) -> None:
        """Another host has taken the clip: make its file, and ask again while the journal is away."""

        def fetched() -> None:
            if clip.message in self._fetching:
                self._fetching.discard(clip.message)
                self._begin(clip)

        def failed(error: object) -> None:
            if clip.message in self._fetching:
                self._loop.call_later(_FETCH_AGAIN_SECONDS, self._fetch, clip, shared)

        shared.share(clip.path.name, fetched, failed)

    def transcribe_apart(self, name: str, key: str, reply: Reply) -> None:
        """Transcribe a clip that is no message; the reply gets a Transcript or a Refused."""
        # No message has such an id.
        id = f"apart {key}"
        if id in self._clips:
            self._clips[id].replies.append(reply)
        elif sum(bool(clip.replies) for clip in self._clips.values()) >= _APART_MAX:
            fault = f"{_APART_MAX} clips are being transcribed"
            reply(messages.Refused(fault, "wait for them", _RETRY_SECONDS, "full"))
        else:
            self._begin(_Clip("", id, self._folder / name, replies=[reply]))

    def _begin(self, clip: _Clip) -> None:
        self.was_used = True
        self._clips[clip.message] = clip
        if self._live.settings.stt.engine == "off":
            self._fail(clip, *_OFF)
        elif self._fault is not None:
            self._fail(clip, *self._fault)
        elif self._is_ready:
            self._send(clip)

    def forget(self, effect: ForgetClip) -> None:
        self._fetching.discard(effect.message)
        clip = self._take(effect.message)
        if clip is not None and clip.is_sent:
            self._services.send(stt_spec.NAME, encode(wire.Forget(clip.message)))

    def service_changed(self, changed: ServiceChanged) -> None:
        """Ready: everything that waits is sent. Gone: what it was at is tried once more. Failed: all end.

        A service that waits for weights counts as failed here: a person must fetch them first.

        A service that was ready can work, however often clips have ended it: only those clips fail.
        """
        was_ready, self._is_ready = self._is_ready, changed.state == "ready"
        is_off = self._live.settings.stt.engine == "off"
        if changed.state in ("failed", "waiting") and not was_ready:
            self._fault = (changed.detail, changed.hint)
        elif changed.state == "ready" or is_off:
            self._fault = None
        if was_ready and not self._is_ready:
            self._service_gone()
        for clip in list(self._clips.values()):
            if is_off or self._fault is not None:
                self._fail(clip, *(self._fault or _OFF))
            elif self._is_ready and not clip.is_sent:
                self._send(clip)

    def expect_end(self) -> None:
        """The service is about to be ended for another reason: that counts against no clip."""
        self._was_ended = self._is_ready
        self._fault = None

    def clip_told(self, service: str, message: wire.FromStt) -> bool:
        """What the STT service says of a clip; False for another service. Of an ended clip it is an echo."""
        if service != stt_spec.NAME:
            return False
        self._news += 1
        clip = self._clips.get(message.message)
        if clip is not None:
            self._told(clip, message)
        return True

    def _told(self, clip: _Clip, message: wire.FromStt) -> None:
        match message:
            case wire.TranscriptProgress():
                if not clip.is_begun:
                    clip.is_begun = True
                    self._watch(clip)
                if message.text and message.seconds_total > _LONG_SECONDS and not clip.replies:
                    seconds = f"{message.seconds_done:.0f} of {message.seconds_total:.0f} s"
                    text = message.text
                    latest = text if len(text) <= _PROGRESS_CHARACTERS else f"…{text[-_PROGRESS_CHARACTERS:]}"
                    self._progress(clip.session, clip.message, f"heard {seconds}: {latest}")
            case wire.Transcribed() if clip.replies:
                self._answer(
                    clip, messages.Transcript(message.text.strip(), message.language, message.seconds)
                )
            case wire.Transcribed() if message.text.strip():
                self._take(clip.message)
                self._post(events.Transcribed(clip.session, clip.message, message.text.strip()))
            case wire.Transcribed():
                self._fail(clip, "nothing was understood", "record it closer to the microphone")
            case wire.NotTranscribed():
                self._not_heard(clip, message)

    def _not_heard(self, clip: _Clip, message: wire.NotTranscribed) -> None:
        clip.tries += 1
        if message.again and clip.tries < _TRIES_MAX and self._is_ready:
            clip.is_begun = False
            self._send(clip)
        else:
            self._fail(clip, message.reason, message.hint, "unavailable" if message.again else "invalid")

    def _send(self, clip: _Clip) -> None:
        try:
            size = clip.path.stat().st_size
        except OSError as error:
            self._fail(clip, f"its clip cannot be read: {error.strerror}", "send it again")
            return
        seconds = self._live.settings.stt.deadline_seconds
        order = wire.Transcribe(clip.message, str(clip.path), size, seconds)
        if self._services.send(stt_spec.NAME, encode(order)) is not Sent.SENT:
            return  # the service is ending; its next state sends the clip again
        clip.is_sent = True
        self._watch(clip)

    def _watch(self, clip: _Clip) -> None:
        """Start the clip's time when the service begins with it: waiting for others does not count."""
        if clip.deadline is not None:
            clip.deadline.cancel()
        clip.news = self._news
        seconds = self._live.settings.stt.deadline_seconds + _GRACE_SECONDS
        clip.deadline = self._loop.call_later(seconds, self._overdue, clip)

    def _service_gone(self) -> None:
        """Count a try of the clip in work; before any progress frame that is the clip that was sent first.

        When the service was ended for an overdue clip, that clip has failed already; no other counts a try.
        """
        sent = [clip for clip in self._clips.values() if clip.is_sent]
        for clip in () if self._was_ended else [clip for clip in sent if clip.is_begun] or sent[:1]:
            clip.tries += 1
        self._was_ended = False
        for clip in sent:
            clip.is_sent = clip.is_begun = False
            if clip.deadline is not None:
                clip.deadline.cancel()
            if clip.tries >= _TRIES_MAX:
                self._fail(clip, f"the STT service ended {clip.tries} times while it was at it", clip.advice)

    def _overdue(self, clip: _Clip) -> None:
        """A stuck decoder does not react to a request: its process is ended, and the next clip continues."""
        if not clip.is_begun and clip.news != self._news:
            self._watch(clip)  # the service works on other clips
            return
        seconds = self._live.settings.stt.deadline_seconds
        self._fail(clip, f"no transcript within {seconds:g} s", clip.advice)
        self._was_ended = True
        self._services.end(stt_spec.NAME, f"a clip took longer than {seconds:g} s", "see [stt] deadline")

    def _fail(self, clip: _Clip, reason: str, hint: str, code: messages.RefusalCode = "unavailable") -> None:
        if clip.replies:
            self._answer(clip, messages.Refused(reason, hint, code=code))
            return
        self._take(clip.message)
        self._post(events.NotTranscribed(clip.session, clip.message, reason, hint))

    def _answer(self, clip: _Clip, answer: messages.Answer) -> None:
        """Answer everyone who waits for a clip that is no message, and remove it."""
        self._take(clip.message)
        with suppress(OSError):
            clip.path.unlink()
        for reply in clip.replies:
            reply(answer)

    def _take(self, message: str) -> _Clip | None:
        clip = self._clips.pop(message, None)
        if clip is not None and clip.deadline is not None:
            clip.deadline.cancel()
        return clip
