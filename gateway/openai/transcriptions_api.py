"""`POST /v1/audio/transcriptions`: a clip that is no message, transcribed by the STT service.

The transcript has no times of words or segments, so formats that consist of them are refused.
"""

import os
from typing import Any

from gateway import audio_upload
from gateway.errors import HttpError, Unavailable
from gateway.exchange import Exchange
from gateway.parts import Parts
from ipc.messages import Transcribe, Transcript

_FILE = "file"
FORMATS = ("json", "text", "verbose_json")
# What the STT service is configured for counts instead: its model and its language.
_IGNORED = frozenset({"model", "language", "prompt", "temperature", "include[]", "chunking_strategy"})
# The STT service has a deadline of its own for each clip, and a line before it.
_PATIENCE_SECONDS = 600.0
_TEXT = ((b"content-type", b"text/plain; charset=utf-8"),)


async def post_transcription(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    if not audio_upload.is_form(exchange):
        raise HttpError(415, "the body is no form", f"send multipart/form-data with a part named {_FILE}")
    assert exchange.token is not None
    with parts.limiter.uploads.one(exchange.token.id):
        clip, fields = await audio_upload.store(exchange, parts.clips, _FILE)
    try:
        format = _format(fields)
        request = Transcribe(clip, f"gateway-{os.urandom(12).hex()}")
        transcript = await parts.supervisor.ask(request, Transcript, _PATIENCE_SECONDS)
    except Unavailable:
        # It may be in work: then it is removed with its transcript. Else it is removed as a stray one.
        raise
    except HttpError:
        audio_upload.discard(parts.clips, clip)
        raise
    if format == "text":
        await exchange.answer_bytes(200, f"{transcript.text}\n".encode(), _TEXT)
    else:
        await exchange.answer(200, _shown(transcript, format))


def _format(fields: dict[str, str]) -> str:
    format = fields.pop("response_format", "json")
    if format not in FORMATS:
        fault = f"there is no transcript in the format {format[:40]!r}"
        raise HttpError(400, fault, f"the formats are {', '.join(FORMATS)}; times of words are not known")
    if fields.pop("stream", "false").lower() == "true":
        raise HttpError(400, "a transcript comes whole", "leave stream out")
    for name in fields:
        if name not in _IGNORED:
            hint = f"the parts are {_FILE}, response_format and {', '.join(sorted(_IGNORED))}"
            raise HttpError(400, f"the part {name[:40]!r} is not served", hint)
    return format


def _shown(transcript: Transcript, format: str) -> dict[str, Any]:
    seconds = round(transcript.seconds, 3)
    shown: dict[str, Any] = {"text": transcript.text, "usage": {"type": "duration", "seconds": seconds}}
    if format == "verbose_json":
        shown |= {"task": "transcribe", "language": transcript.language, "duration": seconds}
    return shown
