"""Tokens a second from workers' sockets to following clients, beside a forwarder that looks at nothing.

One process plays all workers and all clients, the same way for both paths. Every client compares each frame,
byte for byte, with the next one that was sent to it: a lost, doubled or displaced token ends the run.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvloop

from bench.goals import Outcome, rounds_asked, tell
from bench.limits import raw_limit
from bench.pretend import line_of, pretend_service
from ipc.codec import Decoder, encode
from ipc.messages import (
    Ack,
    Answer,
    Assign,
    Delta,
    Finished,
    FromWorker,
    Hello,
    Ready,
    Submit,
    Subscribe,
    ToWorker,
)
from ipc.places import Places
from ipc.sockets import Wire
from ipc.zmtp import Sent
from tests.waiting import DEADLINE_SECONDS
from worker.outbox import UNACKNOWLEDGED_FRAMES_MAX

TITLE = "Tokens relayed, beside a forwarder that looks at nothing"
STREAMS = (1, 10, 100)
TOKENS = 20_000
ROUNDS = 7
# Frames a stream sends before the other streams and the readers get their turn.
_BURST = 32
# Tokens a reader of the raw path hears before it tells its worker, which needs no message.
_TOLD_EVERY = 64
_WORDS = ("under", " these", " oaken", " beams", " nobody", " sleeps", " before", " dawn,")
_FOLLOW, _SUBMIT = (1).to_bytes(8), (2).to_bytes(8)
_to_worker: Decoder[ToWorker] = Decoder(ToWorker)
_answer: Decoder[Answer] = Decoder(Answer)


class Speaker:
    """The worker's end of a stream: sends while its window has room, in bursts, as worker/outbox.py would."""

    def __init__(self, wire: Wire, path: str, incarnation: int) -> None:
        self._socket = wire.dealer(path, f"worker-{incarnation}", self._heard)
        self._number = self._safe = 0
        self._frames: Sequence[bytes] = ()
        self._sent = 0
        self.assigned: asyncio.Future[Assign] = asyncio.get_running_loop().create_future()

    def speak(self, frames: Sequence[bytes]) -> None:
        self._frames, self._sent = frames, 0
        self._pump()

    def post(self, frame: bytes) -> None:
        self._number += 1
        assert self._socket.send([self._number.to_bytes(8), frame]) is Sent.SENT

    def say(self, *messages: FromWorker) -> None:
        for message in messages:
            self.post(encode(message))

    def freed(self, number: int) -> None:
        """Everything up to this frame has left the window; who had to stop goes on."""
        had_to_stop = self._room() <= 0
        self._safe = number
        if had_to_stop:
            self._pump()

    @property
    def is_safe(self) -> bool:
        return self._safe == self._number

    def _room(self) -> int:
        return UNACKNOWLEDGED_FRAMES_MAX - (self._number - self._safe)

    def _pump(self) -> None:
        for frame in self._frames[self._sent : self._sent + min(_BURST, self._room())]:
            self.post(frame)
            self._sent += 1
        if self._sent < len(self._frames) and self._room() > 0:
            asyncio.get_running_loop().call_soon(self._pump)

    def _heard(self, parts: list[bytes]) -> None:
        match _to_worker.decode(parts[0]):
            case Ack(frame=number):
                self.freed(number)
            case Assign() as assign:
                self.assigned.set_result(assign)


class Listener:
    """The client's end: knows what must come next."""

    def __init__(self, wire: Wire, path: str, name: str) -> None:
        self.session = name
        self.socket = wire.dealer(path, name, self._arrived)
        self._frames: Sequence[bytes] = ()
        self._told: Callable[[int], None] = _nobody
        self.heard = 0

    def expect(self, frames: Sequence[bytes], told: Callable[[int], None]) -> None:
        self._frames, self.heard, self._told = frames, 0, told

    @property
    def heard_all(self) -> bool:
        return self.heard == len(self._frames)

    def _arrived(self, parts: list[bytes]) -> None:
        if self.heard < len(self._frames) and parts[1] == self._frames[self.heard]:
            self.heard += 1
            if self.heard % _TOLD_EVERY == 0 or self.heard_all:
                self._told(int.from_bytes(parts[0]))
        else:
            told = _answer.decode(parts[1])
            assert not isinstance(told, Delta), f"after {self.heard} tokens the next one was {told}"


class Ours:
    """Through the supervisor: followed sessions, and a turn of each for every round."""

    def __init__(self, wire: Wire, places: Places, streams: int) -> None:
        self._speakers = [Speaker(wire, line_of(places, number), number) for number in range(1, streams + 1)]
        names = [f"session-{number}" for number in range(streams)]
        self._listeners = {name: Listener(wire, places.control, name) for name in names}
        for number, speaker in enumerate(self._speakers):
            speaker.say(Hello(1, number, number + 1), Ready())
        for name, listener in self._listeners.items():
            listener.socket.send([_FOLLOW, encode(Subscribe(name))])

    async def once(self, tokens: int) -> float:
        for name, listener in self._listeners.items():
            listener.expect((), _nobody)
            listener.socket.send([_SUBMIT, encode(Submit(name, "Go on.", f"{time.monotonic_ns()}"))])
        turns = [await speaker.assigned for speaker in self._speakers]
        joined = []
        for speaker, turn in zip(self._speakers, turns, strict=True):
            speaker.assigned = asyncio.get_running_loop().create_future()
            frames = deltas(turn.session, turn.turn, tokens)
            joined.append((speaker, self._listeners[turn.session], frames, _nobody))
        rate = await run(joined)
        for speaker, turn in zip(self._speakers, turns, strict=True):
            speaker.say(Finished(turn.turn, turn.attempt, "It is done."), Ready())
        await until(lambda: all(speaker.is_safe for speaker in self._speakers))
        return rate


class Raw:
    """Through the forwarder: each worker names its client once."""

    def __init__(self, wire: Wire, workers: str, clients: str, streams: int) -> None:
        self._pairs = []
        for number in range(1, streams + 1):
            speaker = Speaker(wire, workers, number)
            listener = Listener(wire, clients, f"session-{number}")
            listener.socket.send([b"here"])
            speaker.post(listener.session.encode())
            self._pairs.append((speaker, listener))

    async def once(self, tokens: int) -> float:
        return await run(
            [
                (speaker, listener, deltas(listener.session, f"{listener.session}/1", tokens), speaker.freed)
                for speaker, listener in self._pairs
            ]
        )


Joined = tuple[Speaker, Listener, Sequence[bytes], Callable[[int], None]]


async def run(joined: Sequence[Joined]) -> float:
    """Tokens a second, from the first one sent until all have heard all."""
    for _, listener, frames, told in joined:
        listener.expect(frames, told)
    began = time.perf_counter()
    for speaker, _, frames, _ in joined:
        speaker.speak(frames)
    await until(lambda: all(listener.heard_all for _, listener, _, _ in joined))
    return sum(len(frames) for _, _, frames, _ in joined) / (time.perf_counter() - began)


async def until(condition: Callable[[], bool]) -> None:
    """Looks a thousand times a second: rounds take hundreds of milliseconds."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - an event for every token would be measured too
            await asyncio.sleep(0.001)


def deltas(session: str, turn: str, tokens: int) -> list[bytes]:
    frames, offset = [], 0
    for number in range(tokens):
        word = _WORDS[number % len(_WORDS)]
        frames.append(encode(Delta(session, turn, 1, offset, word)))
        offset += len(word)
    return frames


def _nobody(number: int) -> None:
    """The supervisor acknowledges by itself."""


@contextlib.contextmanager
def both(home: Path, streams: int) -> Iterator[tuple[tuple[Ours | Raw, int], ...]]:
    """Each path with the pid of the process in its middle."""
    wire = Wire()
    with (
        pretend_service(home / f"ours-{streams}", streams) as (places, ours_pid),
        raw_limit("forward", home / f"raw-{streams}") as (clients, workers, raw_pid),
    ):
        ours = Ours(wire, places, streams)
        raw = Raw(wire, workers, clients, streams)
        yield (ours, ours_pid), (raw, raw_pid)
        wire.close()


async def compare(home: Path, streams: int, rounds: int) -> list[Outcome]:
    """The rates, and the processor time each token cost the process in the middle."""
    rates: tuple[list[float], list[float]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    tokens = TOKENS // streams
    with both(home, streams) as paths:
        for path, _ in paths:
            await path.once(tokens // 4)
        for _ in range(rounds):
            for index, (path, pid) in enumerate(paths):
                before = processor_seconds(pid)
                rates[index].append(await path.once(tokens))
                costs[index].append((processor_seconds(pid) - before) * 1e6 / (tokens * streams))
    name = f"{streams} stream{'s' if streams > 1 else ''}"
    return [
        Outcome(f"{name}: relayed", *rates, "tokens/s", "at least", 0.6),
        Outcome(f"{name}: processor time of the relay", *costs, "µs/token", "at most", None),
    ]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(rounds: int) -> list[Outcome]:
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for streams in STREAMS:
            outcomes += uvloop.run(compare(Path(folder), streams, rounds))
    return outcomes


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
