"""Any OpenAI-compatible `/audio/transcriptions`: the clip goes there as it came, within its limits."""

import httpx2
import msgspec

from ipc.bounds import Text, Word
from stt_service import transcript_checks
from stt_service.engines import Clip, Tell, Transcript
from stt_service.errors import CannotHear
from stt_service.lanes import Lane
from stt_service.options import Remote
from stt_service.segments import Segment
from stt_service.whisper import Wish

# A transcript of a quarter of an hour has some twenty thousand characters.
_ANSWER_BYTES_MAX = 1024 * 1024
_CONNECT_SECONDS = 10.0
# Within the clip's own deadline, which is the real bound.
_ANSWER_SECONDS = 600.0
_SETTINGS = "check base_url, model and key under [stt] in hermes.toml"


class _Answer(msgspec.Struct, frozen=True):
    text: Text
    language: Word = ""


class RemoteEars:
    """One server and its key, which is in no log and no repr."""

    def __init__(self, remote: Remote) -> None:
        self.name = f"{remote.model} at {httpx2.URL(remote.base_url).host}"
        self._remote = remote
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            # The clip and the key go to this server and to no other.
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
        )

    async def hear(
        self, clip: Clip, segments: list[Segment], wish: Wish, lane: Lane, tell: Tell
    ) -> Transcript:
        try:
            content = await self._post(clip, wish)
        except httpx2.HTTPError as error:
            raise CannotHear(
                f"the transcription server cannot be reached: {type(error).__name__}", _SETTINGS, again=True
            ) from None
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except (msgspec.MsgspecError, RecursionError):
            raise CannotHear("the transcription server answered what is no transcript", _SETTINGS) from None
        text = transcript_checks.without_loops(transcript_checks.without_remarks(answer.text))
        return Transcript(text, answer.language or wish.language or "")

    def release(self) -> None:
        """It holds no weights."""

    async def _post(self, clip: Clip, wish: Wish) -> bytes:
        fields = {"model": self._remote.model, "response_format": "json"}
        prompt = " ".join(filter(None, [wish.hotwords.strip(), wish.prompt.strip()]))
        fields |= {"language": wish.language} if wish.language else {}
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
            # As it came: a kilobyte can be unpacked into gigabytes, and nothing packed was asked for.
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > _ANSWER_BYTES_MAX:
                    raise CannotHear("the transcription server's answer is too long", _SETTINGS)
            return bytes(content)


def _refusal(status: int) -> CannotHear:
    if status in (401, 403):
        return CannotHear("the transcription server refused the key", _SETTINGS)
    if status == 413:
        return CannotHear("the clip is too large for the transcription server", "send shorter parts")
    return CannotHear(
        f"the transcription server answered {status}", _SETTINGS, again=status == 429 or status >= 500
    )
