"""A running STT service and its answers: clips go in as the supervisor sends them, by real frames."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ipc.codec import encode
from ipc.stt_messages import Forget, FromStt, NotTranscribed, Transcribe, Transcribed, TranscriptProgress
from ipc.zmtp import Sent
from supervisor.services import ServiceSpec
from tests.services.watching import PATIENCE_SECONDS, QUICK, Watched, running
from tests.weights import pulled


def spec(**options: Any) -> ServiceSpec:
    # One thread: several test processes share the CPUs, and threads that wait for each other spin meanwhile.
    options = {"models": str(pulled("tiny.en")), "model": "tiny.en", "threads": 1, **options}
    return ServiceSpec(
        "stt",
        "stt_service",
        options,
        start_deadline_seconds=PATIENCE_SECONDS,
        restart=QUICK,
    )


class Hearer:
    """Sends clips and waits for what becomes of them."""

    def __init__(self, watched: Watched, folder: Path) -> None:
        self.watched = watched
        self._folder = folder
        self._count = 0

    def send(self, clip: Path | bytes, deadline_seconds: float = 60.0, **wish: Any) -> str:
        """Returns the message's id at once."""
        self._count += 1
        message = f"m_{self._count}"
        if isinstance(clip, bytes):
            path = self._folder / message
            path.write_bytes(clip)
        else:
            path = clip
        order = Transcribe(message, str(path), path.stat().st_size, deadline_seconds, **wish)
        assert self.watched.services.send("stt", encode(order)) is Sent.SENT
        return message

    def forget(self, message: str) -> None:
        assert self.watched.services.send("stt", encode(Forget(message))) is Sent.SENT

    async def answer(self, message: str) -> Transcribed | NotTranscribed:
        await self.watched.until(lambda: bool(self._answers(message)))
        (answer,) = self._answers(message)
        return answer

    async def hear(self, clip: Path | bytes, **wish: Any) -> Transcribed | NotTranscribed:
        return await self.answer(self.send(clip, **wish))

    def progress(self, message: str) -> list[TranscriptProgress]:
        return [one for one in self.said() if isinstance(one, TranscriptProgress) and one.message == message]

    def said(self) -> list[FromStt]:
        return [message for _, message in self.watched.told]

    def _answers(self, message: str) -> list[Transcribed | NotTranscribed]:
        return [
            one for one in self.said() if not isinstance(one, TranscriptProgress) and one.message == message
        ]


@asynccontextmanager
async def hearing(**options: Any) -> AsyncIterator[Hearer]:
    """Ready to hear."""
    with tempfile.TemporaryDirectory() as folder:
        async with running(spec(**options), has_clips=True) as watched:
            await watched.seen("ready")
            yield Hearer(watched, Path(folder))
