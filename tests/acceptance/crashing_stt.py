"""The STT service, in which native code crashes on a clip with a mark in it: the decoder's or the model's."""

import ctypes
from types import SimpleNamespace
from typing import Any

from ipc import interpreter
from stt_service import __main__ as service
from stt_service import decoder_pool, transcriber
from stt_service.engines import Clip, LocalEngine, Transcript

DECODER_CRASHES = b"the decoder crashes"
MODEL_CRASHES = b"the model crashes"


class _Crashing(LocalEngine):
    async def transcribe(self, clip: Clip, *rest: Any) -> Transcript:
        if MODEL_CRASHES in clip.content:
            ctypes.string_at(0)
        return await super().transcribe(clip, *rest)


def _decoder(module: str, *arguments: str) -> list[str]:
    return interpreter.command("tests.acceptance.crashing_decoder", *arguments)


if __name__ == "__main__":
    vars(transcriber)["LocalEngine"] = _Crashing
    vars(decoder_pool)["interpreter"] = SimpleNamespace(**vars(interpreter) | {"command": _decoder})
    service.main()
