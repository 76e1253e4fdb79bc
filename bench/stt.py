"""A clip's way through the whole service, beside speech to text called directly in one process.

Ours lasts from the answer "accepted" until a client of the control socket sees the transcript: journal, STT
process and decoder process included. Three direct calls take turns with it: faster-whisper with its defaults,
the same with our settings, and our own code without anything around it. The last tells what isolation and
journal cost. Before that, the wrong words of each are counted: over the recorded clips of the tests, and clip
by clip over long ones with repeats, pauses, counting and music, never more than the defaults being the goal.
"""

import json
import os
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
from hermesctl.clip_upload import store
from ipc.messages import Accepted, Event, Noted, Submit, Subscribe, Subscribed
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.stt_service.long_clips import LONG_CLIPS
from tests.stt_service.sounds import SAID, clip, file_of, samples_of
from tests.stt_service.wording import errors, words
from tests.waiting import DEADLINE_SECONDS, until
from tests.weights import pulled

TITLE = "A clip, accepted to transcript, beside direct calls in one process"
ROUNDS = 5
_WAYS = ("defaults", "settings", "equal")
_AT_ONCE = 4
START_SECONDS = 90.0
# The second of the short ones is mumbled: the service is unsure of it and listens twice.
_LENGTHS = {
    "3 s": ("amiable_himself",),
    "3 s, unclear": ("young_man",),
    "10 s": ("young_man", "leisure"),
    "30 s": ("ask_not", "leisure", "more_amiable", "cold_hearted"),
}
# The goals: beside its defaults, and beside our own code without service and journal.
_FASTER = {"3 s": 0.5, "3 s, unclear": 0.5}
_OVERHEAD = {"10 s": 1.05}

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


class Ours:
    """The whole service with its journal, as a client of its control socket sees it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._client = service.client()
        self._follow = self._client.post(Subscribe(None, None))
        self._client.answer_to(self._follow, Subscribed)
        self._sessions = 0
        self._ready: dict[str, tuple[float, str]] = {}
        self._notes: list[str] = []

    def hear(self, path: Path) -> tuple[float, str]:
        """Milliseconds from the answer "accepted" to the transcript, and its words."""
        message, accepted = self._accepted(self._say(path))
        ready, text = self._transcript(message)
        return (ready - accepted) * 1000, text

    def several(self, path: Path) -> float:
        """Clips sent at once, from the first that is accepted until the last has its words."""
        accepted = [self._accepted(number) for number in [self._say(path) for _ in range(_AT_ONCE)]]
        ready = [self._transcript(message)[0] for message, _ in accepted]
        return (max(ready) - accepted[0][1]) * 1000

    def beside(self, short: Path, long: Path) -> float:
        """A command while the minute before it is being heard."""
        minute, _ = self._accepted(self._say(long))
        while not self._notes:
            self._listen()
        self._notes.clear()
        spent, _ = self.hear(short)
        self._transcript(minute)
        return spent

    def rest(self) -> None:
        """Until nothing is at work any more: what follows is measured alone."""
        until(lambda: not self._service.show("turns", state="running"))

    def _say(self, path: Path) -> int:
        self._sessions += 1
        name = store(self._service.places, str(path))
        return self._client.post(Submit(f"s{self._sessions}", "", os.urandom(8).hex(), clip=name))

    def _accepted(self, number: int) -> tuple[str, float]:
        answer = self._client.answer_to(number, Accepted)
        return answer.message, time.perf_counter()

    def _transcript(self, message: str) -> tuple[float, str]:
        while message not in self._ready:
            self._listen()
        return self._ready[message]

    def _listen(self) -> None:
        arrived = self._client.receive(DEADLINE_SECONDS)
        assert arrived is not None, "nothing was heard for a long time"
        match arrived[1]:
            case Event(type="transcript.ready", fields=fields):
                self._ready[fields["message"]] = time.perf_counter(), fields["text"]
            case Event(type="transcript.failed", fields=fields):
                raise AssertionError(fields["reason"])
            case Noted(text=text):
                self._notes.append(text)


@contextmanager
def ours(folder: Path) -> Iterator[Ours]:
    """One seat: what answers the words is a fake model, which costs next to nothing."""
    home = folder / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    with FakeModel() as model:
        settings = settings_for(model, workers="count = 1\nspares = 0", stt='language = "en"')
        with Service(home, settings) as service:
            until(lambda: any(row["state"] == "ready" for row in service.show("services")), START_SECONDS)
            yield Ours(service)


def compare(folder: Path, rounds: int) -> list[Outcome]:
    clips = {length: folder / f"{number}.ogg" for number, length in enumerate(_LENGTHS)}
    for length, names in _LENGTHS.items():
        clips[length].write_bytes(file_of(np.concatenate([samples_of(name) for name in names]), "ogg"))
    minute = folder / "minute.ogg"
    minute.write_bytes(file_of(np.concatenate([samples_of(name) for name in SAID] * 2), "ogg"))
    times: Times = defaultdict(list)
    with ours(folder) as whole, direct() as caller:
        compare_words(whole, caller)
        compare_long_clips(folder, whole, caller)
        for _ in range(rounds):
            for length, path in clips.items():
                times["ours", length].append(whole.hear(path)[0])
                whole.rest()
                for way in _WAYS:
                    times[way, length].append(caller.hear(way, path)[0])
            times["ours", "at once"].append(whole.several(clips["3 s"]))
            whole.rest()
            one_by_one = [caller.hear("equal", clips["3 s"])[0] for _ in range(_AT_ONCE)]
            times["equal", "at once"].append(sum(one_by_one))
            times["ours", "beside"].append(whole.beside(clips["3 s"], minute))
            whole.rest()
    return outcomes(times)


def compare_words(whole: Ours, caller: Direct) -> None:
    """Every recorded clip once each way; this also warms all of them up."""
    wrong: dict[str, int] = defaultdict(int)
    for name, said in SAID.items():
        wrong["ours"] += errors(said, whole.hear(clip(name))[1])
        for way in _WAYS:
            wrong[way] += errors(said, caller.hear(way, clip(name))[1])
    total = sum(len(words(said)) for said in SAID.values())
    rows = [[way, str(count), f"{count / total:.1%}"] for way, count in wrong.items()]
    table(f"Wrong words of {total}", [["", "words", "rate"], *rows])


def compare_long_clips(folder: Path, whole: Ours, caller: Direct) -> None:
    """Each long clip once through the service and once through the library's defaults."""
    rows = [["", "words", "ours", "defaults", "time", "goal"]]
    path = folder / "long.ogg"
    for name, make in LONG_CLIPS.items():
        content, said = make()
        path.write_bytes(content)
        ours_ms, ours_text = whole.hear(path)
        whole.rest()
        defaults_ms, defaults_text = caller.hear("defaults", path)
        wrong, theirs = errors(said, ours_text), errors(said, defaults_text)
        met = "met" if wrong <= theirs else "not met"
        ratio = f"{ours_ms / defaults_ms:.2f}"
        rows.append([name, str(len(words(said))), str(wrong), str(theirs), ratio, met])
    table("Wrong words of long clips beside faster-whisper's defaults, and time as a ratio", rows)


def outcomes(times: Times) -> list[Outcome]:
    def outcome(what: str, ours: str, limit: tuple[str, str], goal: float | None) -> Outcome:
        return Outcome(what, times["ours", ours], times[limit], "ms", "at most", goal)

    found = []
    for length in _LENGTHS:
        found += [
            outcome(
                f"{length}, defaults", length, ("defaults", length), 0.5 if length.startswith("3") else None
            ),
            outcome(f"{length}, our settings", length, ("settings", length), None),
            outcome(f"{length}, our own code", length, ("equal", length), _OVERHEAD.get(length)),
        ]
    found.append(outcome(f"{_AT_ONCE} of 3 s at once, one by one", "at once", ("equal", "at once"), None))
    found.append(outcome("3 s beside a minute, alone", "beside", ("ours", "3 s"), None))
    return found


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        return compare(Path(folder), rounds)


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
