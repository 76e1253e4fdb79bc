"""The decoder process of the STT service, which crashes in native code on a clip with the mark in it."""

import ctypes

from stt_service import decoder
from stt_service.audio_decoding import decode
from stt_service.options import Limits
from stt_service.sound import Sound
from tests.acceptance.crashing_stt import DECODER_CRASHES


def _crashing(content: bytes, limits: Limits) -> Sound:
    if DECODER_CRASHES in content:
        ctypes.string_at(0)
    return decode(content, limits)


if __name__ == "__main__":
    vars(decoder)["decode"] = _crashing
    decoder.main()
