"""`python -m bench.direct_stt MODELS`: speech to text called directly in one process, for bench/stt.py.

Reads `WAY PATH` lines and answers each with the seconds it took and the words, as JSON.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stt_service.audio_decoding import decode
from stt_service.containers import sniff
from stt_service.engines import Clip, LocalEngine
from stt_service.lanes import Lane
from stt_service.options import Limits
from stt_service.segments import cut
from stt_service.whisper import FasterWhisper, TranscribeOptions, find_voice


def main() -> None:
    folder = Path(sys.argv[1])
    ways: dict[str, Callable[[str], str]] = {
        "defaults": _defaults(folder),
        "settings": _settings(folder),
        "equal": _equal(folder),
    }
    print("warm", flush=True)
    for line in sys.stdin:
        way, path = line.split()
        began = time.perf_counter()
        text = ways[way](path)
        spent = time.perf_counter() - began
        print(json.dumps({"seconds": spent, "text": text}), flush=True)


def _defaults(folder: Path) -> Callable[[str], str]:
    """As its first example has it."""
    from faster_whisper import WhisperModel  # type: ignore[import-untyped]

    model = WhisperModel(str(folder))
    return lambda path: " ".join(part.text.strip() for part in model.transcribe(path)[0])


def _settings(folder: Path) -> Callable[[str], str]:
    """Its own call with our settings: whole numbers, greedy, no time stamps, language given, silence cut."""
    from faster_whisper import WhisperModel

    model = WhisperModel(str(folder), compute_type="int8", cpu_threads=len(os.sched_getaffinity(0)))
    return lambda path: " ".join(
        part.text.strip()
        for part in model.transcribe(
            path,
            language="en",
            beam_size=1,
            temperature=0.0,
            without_timestamps=True,
            vad_filter=True,
            condition_on_previous_text=False,
        )[0]
    )


def _equal(folder: Path) -> Callable[[str], str]:
    """Exactly what the service does with a clip, without the service."""
    engine = LocalEngine("", FasterWhisper(folder, threads=0))
    lane = Lane("direct")

    def transcribe(path: str) -> str:
        content = Path(path).read_bytes()
        sound = decode(content, Limits())
        clip = Clip(content, sniff(content), sound)
        segments = cut(sound, find_voice)
        return asyncio.run(
            engine.transcribe(clip, segments, TranscribeOptions("en"), lane, lambda *_: None)
        ).text

    return transcribe


if __name__ == "__main__":
    main()
