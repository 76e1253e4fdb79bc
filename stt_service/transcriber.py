"""The service: one answer for each clip. A clip that cannot be transcribed fails alone."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ipc.messages import Beat, Message
from ipc.service_messages import ServiceState
from ipc.stt_messages import Forget, NotTranscribed, ToStt, Transcribe, Transcribed, TranscriptProgress
from stt_service.clip_file import read_clip
from stt_service.containers import sniff
from stt_service.decoder_pool import DecoderPool
from stt_service.engines import Clip, LocalEngine, SttEngine, Transcript
from stt_service.errors import CannotServe, CannotTranscribe, no_words_found
from stt_service.lanes import Lane, Lanes
from stt_service.options import EngineName, Options
from stt_service.remote_engine import RemoteEngine
from stt_service.segments import cut
from stt_service.weight_check import find_weights
from stt_service.whisper import FasterWhisper, TranscribeOptions, find_voice

_BEAT_SECONDS = 1.0
# Clips whose sound may be in memory at once, 29 MB each at most.
_OPEN_MAX = 16
# Clips that may wait; each is a path and a few words.
_WAITING_MAX = 1000

Send = Callable[[Message], None]


class Service:
    """Transcribes clips with the engines that could be loaded, in their order."""

    def __init__(self, options: Options, send: Send) -> None:
        self._options = options
        self._send = send
        self._decoders = DecoderPool(options.limits)
        self._lanes = Lanes()
        self._engines: list[SttEngine] = []
        self._open = asyncio.Semaphore(_OPEN_MAX)
        self._warm = asyncio.Event()
        self._clips: dict[str, asyncio.Task[None]] = {}
        self._ready = ServiceState("ready")
        self._resting = False
        self._used_at = time.monotonic()
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Runs until the process is killed. An unforeseen error ends it too; the supervisor restarts it."""
        async with self._decoders, self._tasks:
            self._tasks.create_task(self._beat())
            await self._warm_up()
            if self._options.idle_seconds > 0:
                self._tasks.create_task(self._release_when_idle())

    def receive(self, order: ToStt) -> None:
        if isinstance(order, Forget):
            if order.message in self._clips:
                self._clips[order.message].cancel()
        elif order.message not in self._clips:
            if len(self._clips) >= _WAITING_MAX:
                reason = f"{_WAITING_MAX} clips are waiting already"
                self._send(NotTranscribed(order.message, reason, "send it again in a while", again=True))
                return
            task = self._tasks.create_task(self._answer(order))
            self._clips[order.message] = task
            task.add_done_callback(lambda _: self._clips.pop(order.message))

    async def _beat(self) -> None:
        while True:
            self._send(Beat())
            await asyncio.sleep(_BEAT_SECONDS)

    async def _warm_up(self) -> None:
        self._send(ServiceState("warming", detail=f"loading {self._options.model}"))
        await self._decoders.warm_up()
        missing: list[CannotServe] = []
        for name in self._options.engines:
            try:
                self._engines.append(await asyncio.to_thread(_load_engine, name, self._options))
            except CannotServe as error:
                missing.append(error)
        if not self._engines:
            self._send(ServiceState("failed", detail=missing[0].fault, hint=missing[0].hint))
            # The supervisor ends this process after reading the reason.
            return
        names = ", then ".join(engine.name for engine in self._engines)
        faults = "".join(f"; {error.fault}" for error in missing)
        self._ready = ServiceState("ready", detail=names + faults, hint=missing[0].hint if missing else "")
        self._send(self._ready)
        self._warm.set()

    async def _answer(self, order: Transcribe) -> None:
        await self._warm.wait()
        if self._resting:
            self._resting = False
            self._send(self._ready)
        try:
            async with self._open:
                answer: Message = await self._transcribe(order)
        except CannotTranscribe as error:
            answer = NotTranscribed(order.message, error.reason, error.hint, error.again)
        except MemoryError:
            answer = NotTranscribed(
                order.message, "the clip needs more memory than there is", "send shorter parts"
            )
        self._used_at = time.monotonic()
        self._send(answer)

    async def _transcribe(self, order: Transcribe) -> Transcribed:
        limits = self._options.limits
        content = await asyncio.to_thread(read_clip, order.path, order.bytes, limits)
        kind = sniff(content)
        sound = await self._decoders.decode(content)
        async with self._lanes.lane(sound.seconds) as lane:
            try:
                # The deadline starts here: waiting for other clips does not count.
                async with asyncio.timeout(order.deadline_seconds):
                    transcript = await self._transcribe_sound(order, Clip(content, kind, sound), lane)
            except TimeoutError:
                raise CannotTranscribe(
                    f"transcribing took longer than {order.deadline_seconds:g} s",
                    "send a shorter clip, or raise deadline under [stt]",
                ) from None
        if not transcript.text:
            raise no_words_found(sound.cautions)
        return Transcribed(order.message, transcript.text, transcript.language, sound.seconds, sound.cautions)

    async def _transcribe_sound(self, order: Transcribe, clip: Clip, lane: Lane) -> Transcript:
        sound = clip.sound

        def report(seconds_done: float, text: str) -> None:
            self._send(
                TranscriptProgress(order.message, round(seconds_done, 2), round(sound.seconds, 2), text)
            )

        report(0.0, "")
        segments = await lane.run(lambda: cut(sound, find_voice))
        if not segments:
            raise no_words_found(sound.cautions)
        options = TranscribeOptions(
            order.language or self._options.language,
            order.prompt or self._options.prompt,
            order.hotwords or self._options.hotwords,
        )
        faults: list[CannotTranscribe] = []
        for engine in self._engines:
            try:
                return await engine.transcribe(clip, segments, options, lane, report)
            except CannotTranscribe as error:
                faults.append(error)
        raise faults[0]

    async def _release_when_idle(self) -> None:
        limit = self._options.idle_seconds
        while True:
            await asyncio.sleep(max(self._used_at + limit - time.monotonic(), _BEAT_SECONDS))
            # A clip may have come and gone meanwhile.
            is_idle = time.monotonic() - self._used_at >= limit
            if is_idle and not self._clips and not self._resting:
                self._resting = True
                for engine in self._engines:
                    engine.release()
                self._send(msgspec.structs.replace(self._ready, detail=f"{self._ready.detail}, resting"))


def _load_engine(name: EngineName, options: Options) -> SttEngine:
    """Loads the engine; raises CannotServe with the reason when something is missing."""
    if name == "faster-whisper":
        whisper = FasterWhisper(find_weights(Path(options.models), options.model), options.threads)
        if fault := whisper.language_fault(options.language):
            raise CannotServe(*fault)
        whisper.warm_up()
        return LocalEngine(options.model, whisper)
    if options.remote is None:
        raise CannotServe("the openai engine has no server", "set base_url and model under [stt]")
    return RemoteEngine(options.remote)
