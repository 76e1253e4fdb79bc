"""People who use the service while it breaks: they write, speak, steer, interrupt, answer and come back."""

import json
import random
import threading
from collections.abc import Callable

from hermesctl.clip_upload import store
from ipc.messages import BusyMode, Event, Interrupt, Queue, Respond, Submit
from ipc.places import Places
from tests.acceptance.sight import shell, sleeper
from tests.checker import Sight
from tests.crash.audience import Audience, Play
from tests.service import ENDINGS
from tests.stt_service.sounds import clip

SESSIONS_EACH = 4
# What one person leaves unanswered before waiting for it.
_UNANSWERED_MAX = 4
# A visit without an end means that something is stuck; far above what any storm here takes.
_STUCK_SECONDS = 120.0
# Of the messages. To understand a clip takes the better part of a second of a processor.
_SPOKEN_SHARE = 0.05
_MODES: tuple[BusyMode, ...] = ("interrupt", "queue", "steer", "collect")


class Settled:
    """Holds when every message so far has ended, or when a question waits for an answer."""

    def __init__(self) -> None:
        self.question = ""

    def __call__(self, events: list[Event]) -> bool:
        unanswered: set[str] = set()
        turns: dict[str, set[str]] = {}
        self.question = ""
        for event in events:
            fields = event.fields
            match event.type:
                case "message.accepted":
                    unanswered.add(fields["message"])
                case "message.dropped" | "transcript.failed":
                    unanswered.discard(fields["message"])
                case "turn.opened":
                    turns[fields["turn"]] = set(fields["messages"])
                case "turn.joined":
                    turns[fields["turn"]].update(fields["messages"])
                case "turn.steered":
                    turns[fields["turn"]].add(fields["message"])
                case "question.asked":
                    self.question = fields["question"]
                case "question.answered":
                    self.question = ""
                    turns[fields["turn"]].add(fields["by"])
                case kind if kind in ENDINGS:
                    self.question = ""
                    unanswered -= turns[fields["turn"]]
        return not unanswered or bool(self.question)


def visit(
    session: str, chance: random.Random, is_over: Callable[[], bool], mark: str, places: Places
) -> Play:
    """One person in one session until it is over; then whatever was begun is brought to its end."""
    sent = unanswered = 0
    while not is_over():
        act = chance.choices(("send", "interrupt", "clear", "calm"), (6, 1, 0.3, 2))[0]
        if act == "calm" or unanswered >= _UNANSWERED_MAX:
            yield from _calm(session, chance)
            unanswered = 0
        elif act == "send":
            sent += 1
            unanswered += 1
            spoken = chance.random() < _SPOKEN_SHARE
            said = "" if spoken else _text(chance, mark)
            recorded = store(places, str(clip("young_man"))) if spoken else ""
            yield Submit(session, said, f"key-{sent}", busy=chance.choice(_MODES), clip=recorded)
        elif act == "interrupt":
            yield Interrupt(session, "visitor", drop=chance.random() < 0.3)
        else:
            yield Queue(session, "clear")
    yield from _calm(session, chance)


def _calm(session: str, chance: random.Random) -> Play:
    """Lets go what is held, answers what is asked, and waits until nothing is owed any more."""
    settled = Settled()
    while True:
        yield Queue(session, "resume")
        yield settled
        if not settled.question:
            return
        if chance.random() < 0.8:
            yield Respond(settled.question, "tea", "visitor")
        else:
            yield Interrupt(session, "visitor")


def _text(chance: random.Random, mark: str) -> str:
    question = json.dumps([{"name": "ask", "arguments": {"question": "Tea or coffee?"}}])
    texts = (
        f"hello {chance.random()}",
        f"[[slow interval=0.02 count={chance.randrange(5, 60)}]] go",
        shell("echo begun; sleep 0.2; echo done"),
        shell(f"(setsid bash -c '{sleeper(mark)}' >/dev/null 2>&1 &); {sleeper(mark)} & sleep 0.3"),
        "[[429 retry_after=0 times=1]] be patient",
        "[[400]] this fails",
        "[[drop tokens=2 times=1]] the line breaks",
        "[[stall tokens=2]] this hangs",
        f"[[tools calls='{question}']] ask me",
    )
    return chance.choices(texts, (6, 5, 3, 2, 1, 1, 1, 0.15, 2))[0]


class Crowd:
    """Visitors on one connection, in a thread of their own; they come back whenever the line is lost."""

    def __init__(
        self, name: str, places: Places, seed: str, life: Callable[[], int], over: threading.Event, mark: str
    ) -> None:
        self._life = life
        self._chance = random.Random(seed)
        self.visits = 0
        self.fault: BaseException | None = None
        sessions = [f"{name}-{number}" for number in range(SESSIONS_EACH)]
        plays = {
            each: visit(each, random.Random(seed + each), over.is_set, mark, places) for each in sessions
        }
        self._audience = Audience(places, plays)
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    @property
    def sights(self) -> list[Sight]:
        return self._audience.sights

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._audience.is_content:
                self._visit()
        except AssertionError as fault:
            self.fault = fault

    def _visit(self) -> None:
        """Until the service has died, or until a whim: everybody loses a line now and then."""
        life = self._life()
        enough = self._audience.events + self._chance.randrange(20, 200)
        audience = self._audience
        self.visits += 1
        audience.visit(
            lambda: self._life() != life,
            lambda: audience.is_content or audience.events >= enough,
            _STUCK_SECONDS,
        )
