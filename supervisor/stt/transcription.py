"""Clips on their way to words: sent to the STT service, tried again when it dies, ended at their deadline.

Every clip that is taken in here comes out as Transcribed or NotTranscribed, unless it is forgotten.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ipc import stt_messages as wire
from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.zmtp import Sent
from supervisor.config.live import Live
from supervisor.core import events
from supervisor.core.effects import ForgetClip, Transcribe
from supervisor.stt import stt_spec

# A clip that has ended two processes would end every further one.
_TRIES_MAX = 2
# The service keeps a clip's deadline itself; one that has not said so by then cannot.
_GRACE_SECONDS = 3.0
# What is shorter is understood in one go: its progress would only be its words, twice.
_LONG_SECONDS = 30.0
# Of a long clip the end of what was understood so far: it fits a note, and the rest was told before.
_PROGRESS_CHARACTERS = 3000
_OFF = ("voice is switched off", "set [stt] engine in hermes.toml, then `hermesctl reload`")
_KEPT = "the clip is kept; say it again, or `hermesctl retry {message}` when the cause is mended"


class Services(Protocol):
    def send(self, name: str, frame: bytes) -> Sent: ...
    def end(self, name: str, detail: str, hint: str) -> None: ...


@dataclass(slots=True)
class _Clip:
    """One clip nobody has the words of yet."""

    session: str
    message: str
    path: Path
    tries: int = 0
    is_sent: bool = False
    is_begun: bool = False
    # What the service had said in all when its time began.
    news: int = 0
    deadline: asyncio.TimerHandle | None = None


class Hearing:
    """The clips under way and the one service that understands them."""

    def __init__(
        self,
        *,
        live: Live,
        clips: Path,
        post: Callable[[events.Event], None],
        progress: Callable[[str, str, str], None],
    ) -> None:
        """`progress` gets a session, a message and what is known of its clip so far."""
        self._live = live
        self._folder = clips
        self._post = post
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._decoder: Decoder[wire.FromHearing] = Decoder(wire.FromHearing)
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
        """Why nobody can be heard, and the remedy."""
        return self._fault

    def transcribe(self, effect: Transcribe) -> None:
        self.was_used = True
        clip = _Clip(effect.session, effect.message, self._folder / effect.clip)
        self._clips[clip.message] = clip
        if self._live.settings.stt.engine == "off":
            self._fail(clip, *_OFF)
        elif self._fault is not None:
            self._fail(clip, *self._fault)
        elif self._is_ready:
            self._send(clip)

    def forget(self, effect: ForgetClip) -> None:
        clip = self._take(effect.message)
        if clip is not None and clip.is_sent:
            self._services.send(stt_spec.NAME, encode(wire.Forget(clip.message)))

    def service_changed(self, changed: events.ServiceChanged) -> None:
        """Ready: everything that waits is sent. Gone: what it was at is tried once more. Failed: all end.

        Waiting for weights is failed to whoever speaks: somebody must fetch them first.

        One that was ready can work, however often clips have ended it: only those clips pay for that.
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
        """The service is about to be ended for reasons of its own: no clip pays for that."""
        self._was_ended = self._is_ready
        self._fault = None

    def frame_arrived(self, service: str, frame: bytes) -> bool:
        """What the service says of a clip; False when it cannot be read. Of an ended clip it is an echo."""
        try:
            message = self._decoder.decode(frame)
        except WireError:
            return False
        self._news += 1
        clip = self._clips.get(message.message)
        if clip is None:
            return True
        match message:
            case wire.Hearing():
                if not clip.is_begun:
                    clip.is_begun = True
                    self._watch(clip)
                if message.text and message.seconds_total > _LONG_SECONDS:
                    seconds = f"{message.seconds_done:.0f} of {message.seconds_total:.0f} s"
                    text = message.text
                    latest = text if len(text) <= _PROGRESS_CHARACTERS else f"…{text[-_PROGRESS_CHARACTERS:]}"
                    self._progress(clip.session, clip.message, f"heard {seconds}: {latest}")
            case wire.Heard() if message.text.strip():
                self._take(clip.message)
                self._post(events.Transcribed(clip.session, clip.message, message.text.strip()))
            case wire.Heard():
                self._fail(clip, "nothing was understood", "speak closer to the microphone")
            case wire.NotHeard():
                self._not_heard(clip, message)
        return True

    def _not_heard(self, clip: _Clip, message: wire.NotHeard) -> None:
        clip.tries += 1
        if message.again and clip.tries < _TRIES_MAX and self._is_ready:
            clip.is_begun = False
            self._send(clip)
        else:
            self._fail(clip, message.reason, message.hint)

    def _send(self, clip: _Clip) -> None:
        try:
            size = clip.path.stat().st_size
        except OSError as error:
            self._fail(clip, f"its clip cannot be read: {error.strerror}", "send it again")
            return
        seconds = self._live.settings.stt.deadline_seconds
        order = wire.Transcribe(clip.message, str(clip.path), size, seconds)
        if self._services.send(stt_spec.NAME, encode(order)) is not Sent.SENT:
            return  # the service is going; its next state sends the clip again
        clip.is_sent = True
        self._watch(clip)

    def _watch(self, clip: _Clip) -> None:
        """Its time begins when the service begins with it: to wait for others is no fault of a clip."""
        if clip.deadline is not None:
            clip.deadline.cancel()
        clip.news = self._news
        seconds = self._live.settings.stt.deadline_seconds + _GRACE_SECONDS
        clip.deadline = self._loop.call_later(seconds, self._overdue, clip)

    def _service_gone(self) -> None:
        """What it was at has had a try; when it had not come to say, that is the clip it got first.

        When it was ended for a clip that took too long, that one has paid, and nobody else does.
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
                hint = _KEPT.format(message=clip.message)
                self._fail(clip, f"the speech service ended {clip.tries} times while it was at it", hint)

    def _overdue(self, clip: _Clip) -> None:
        """A decoder that is stuck hears no request to stop: its process is ended, the next clip goes on."""
        if not clip.is_begun and clip.news != self._news:
            self._watch(clip)  # others are heard meanwhile
            return
        seconds = self._live.settings.stt.deadline_seconds
        self._fail(clip, f"no words within {seconds:g} s", _KEPT.format(message=clip.message))
        self._was_ended = True
        self._services.end(stt_spec.NAME, f"a clip took longer than {seconds:g} s", "see [stt] deadline")

    def _fail(self, clip: _Clip, reason: str, hint: str) -> None:
        self._take(clip.message)
        self._post(events.NotTranscribed(clip.session, clip.message, reason, hint))

    def _take(self, message: str) -> _Clip | None:
        clip = self._clips.pop(message, None)
        if clip is not None and clip.deadline is not None:
            clip.deadline.cancel()
        return clip
