"""Transcribes with any OpenAI-compatible `/audio/transcriptions`: sends the clip as received."""

import httpx2
import msgspec

from ipc.bounds import Text, Word
from stt_service import transcript_checks
from stt_service.engines import Clip, Report, Transcript
from stt_service.errors import CannotTranscribe
from stt_service.lanes import Lane
from stt_service.options import Remote
from stt_service.segments import Segment
from stt_service.whisper import TranscribeOptions

# A transcript of a quarter of an hour has some twenty thousand characters.
_ANSWER_BYTES_MAX = 1024 * 1024
_CONNECT_SECONDS = 10.0
# A backstop: the deadline of the clip is shorter.
_ANSWER_SECONDS = 600.0
_SETTINGS = "check base_url, model and key under [stt] in hermes.toml"


class _Answer(msgspec.Struct, frozen=True):
    text: Text
    language: Word = ""


class RemoteEngine:
    """One server and its key; the key appears in no log and no repr."""

    def __init__(self, remote: Remote) -> None:
        self.name = f"{remote.model} at {httpx2.URL(remote.base_url).host}"
        self._remote = remote
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            # The clip and the key go to this server and to no other.
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
        )

    async def transcribe(
        self, clip: Clip, segments: list[Segment], options: TranscribeOptions, lane: Lane, report: Report
    ) -> Transcript:
        try:
            content = await self._post(clip, options)
        except httpx2.HTTPError as error:
            raise CannotTranscribe(
                f"the transcription server cannot be reached: {type(error).__name__}", _SETTINGS, again=True
            ) from None
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except (msgspec.MsgspecError, RecursionError):
            raise CannotTranscribe(
                "the transcription server answered what is no transcript", _SETTINGS
            ) from None
        text = transcript_checks.without_loops(transcript_checks.without_remarks(answer.text))
        return Transcript(text, answer.language or options.language or "")

    def release(self) -> None:
        """Does nothing: a remote engine holds no weights."""

    async def _post(self, clip: Clip, options: TranscribeOptions) -> bytes:
        fields = {"model": self._remote.model, "response_format": "json"}
        prompt = " ".join(filter(None, [options.hotwords.strip(), options.prompt.strip()]))
        fields |= {"language": options.language} if options.language else {}
        fields |= {"prompt": prompt} if prompt else {}
        headers = {"Authorization": f"Bearer {self._remote.api_key}"} if self._remote.api_key else {}
        async with self._client.stream(
            "POST",
            f"{self._remote.base_url.rstrip('/')}/audio/transcriptions",
            data=fields,
            files={"file": (clip.kind.file_name, clip.content, clip.kind.media_type)},
            headers=headers,
        ) as response:
            if response.status_code != 200:
                raise _refusal(response.status_code)
            content = bytearray()
            # Raw bytes: a kilobyte can decompress to gigabytes, and the request asks for no compression.
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > _ANSWER_BYTES_MAX:
                    raise CannotTranscribe("the transcription server's answer is too long", _SETTINGS)
            return bytes(content)


def _refusal(status: int) -> CannotTranscribe:
    if status in (401, 403):
        return CannotTranscribe("the transcription server refused the key", _SETTINGS)
    if status == 413:
        return CannotTranscribe("the clip is too large for the transcription server", "send shorter parts")
    return CannotTranscribe(
        f"the transcription server answered {status}", _SETTINGS, again=status == 429 or status >= 500
    )
