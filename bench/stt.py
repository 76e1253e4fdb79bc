"""A clip's way through the STT service, beside speech to text called directly in one process.

Three direct calls take turns with ours: faster-whisper with its defaults, the same with our settings, and
our own code without the service around it. The last one tells what the isolation costs.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.goals import Outcome, rounds_asked, tell
from bench.report import table
from ipc.hearing import Heard
from tests.stt_service.hearer import Hearer, hearing
from tests.stt_service.sounds import SAID, clip, file_of, samples_of
from tests.stt_service.wording import errors, words
from tests.weights import pulled

TITLE = "A clip through the STT service, beside direct calls in one process"
ROUNDS = 5
_WAYS = ("defaults", "settings", "equal")
_AT_ONCE = 4
_LENGTHS = {
    "3 s": ("young_man",),
    "10 s": ("young_man", "leisure"),
    "30 s": ("ask_not", "leisure", "more_amiable", "cold_hearted"),
}

Times = dict[tuple[str, str], list[float]]


class Direct:
    """The process that calls directly."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._answers = process.stdin, process.stdout
        assert self._answers.readline() == "warm\n"

    def hear(self, way: str, path: Path) -> tuple[float, str]:
        self._orders.write(f"{way} {path}\n")
        self._orders.flush()
        answer = json.loads(self._answers.readline())
        return answer["seconds"] * 1000, answer["text"]


@contextmanager
def direct() -> Iterator[Direct]:
    command = [sys.executable, "-m", "bench.direct_stt", str(pulled("tiny.en") / "tiny.en")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Direct(process)
        assert process.stdin is not None
        process.stdin.close()


async def timed(hearer: Hearer, path: Path) -> tuple[float, str]:
    began = time.perf_counter()
    answer = await hearer.hear(path, language="en")
    spent = time.perf_counter() - began
    assert isinstance(answer, Heard), answer
    return spent * 1000, answer.text


async def several(hearer: Hearer, path: Path) -> float:
    """Clips sent at once, until the last is answered."""
    began = time.perf_counter()
    await asyncio.gather(*(hearer.hear(path, language="en") for _ in range(_AT_ONCE)))
    return (time.perf_counter() - began) * 1000


async def beside_long(hearer: Hearer, short: Path, long: Path) -> float:
    """A command while the minute before it is being heard."""
    minute = hearer.send(long, language="en")
    await hearer.watched.until(lambda: bool(hearer.progress(minute)))
    spent, _ = await timed(hearer, short)
    await hearer.answer(minute)
    return spent


async def compare(folder: Path, rounds: int) -> list[Outcome]:
    clips = {length: folder / f"{length[:-2]}.ogg" for length in _LENGTHS}
    for length, names in _LENGTHS.items():
        clips[length].write_bytes(file_of(np.concatenate([samples_of(name) for name in names]), "ogg"))
    minute = folder / "minute.ogg"
    minute.write_bytes(file_of(np.concatenate([samples_of(name) for name in SAID] * 2), "ogg"))
    times: Times = defaultdict(list)
    async with hearing() as hearer:
        with direct() as caller:
            await compare_words(hearer, caller)
            for _ in range(rounds):
                for length, path in clips.items():
                    times["ours", length].append((await timed(hearer, path))[0])
                    for way in _WAYS:
                        times[way, length].append(caller.hear(way, path)[0])
                times["ours", "at once"].append(await several(hearer, clips["3 s"]))
                one_by_one = [caller.hear("equal", clips["3 s"])[0] for _ in range(_AT_ONCE)]
                times["equal", "at once"].append(sum(one_by_one))
                times["ours", "beside"].append(await beside_long(hearer, clips["3 s"], minute))
    return outcomes(times)


async def compare_words(hearer: Hearer, caller: Direct) -> None:
    """Every recorded clip once each way; this also warms all of them up."""
    wrong: dict[str, int] = defaultdict(int)
    for name, said in SAID.items():
        wrong["ours"] += errors(said, (await timed(hearer, clip(name)))[1])
        for way in _WAYS:
            wrong[way] += errors(said, caller.hear(way, clip(name))[1])
    total = sum(len(words(said)) for said in SAID.values())
    rows = [[way, str(count), f"{count / total:.1%}"] for way, count in wrong.items()]
    table(f"Wrong words of {total}", [["", "words", "rate"], *rows])


def outcomes(times: Times) -> list[Outcome]:
    def outcome(what: str, ours: str, limit: tuple[str, str], goal: float | None) -> Outcome:
        return Outcome(what, times["ours", ours], times[limit], "ms", "at most", goal)

    found = []
    for length in _LENGTHS:
        found += [
            outcome(f"{length}, defaults", length, ("defaults", length), 0.5 if length == "3 s" else None),
            outcome(f"{length}, our settings", length, ("settings", length), None),
            outcome(f"{length}, our own code", length, ("equal", length), 1.05 if length == "10 s" else None),
        ]
    found.append(outcome(f"{_AT_ONCE} of 3 s at once, one by one", "at once", ("equal", "at once"), None))
    found.append(outcome("3 s beside a minute, alone", "beside", ("ours", "3 s"), None))
    return found


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(compare(Path(folder), rounds))


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
