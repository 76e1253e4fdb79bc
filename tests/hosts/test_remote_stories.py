"""Stories of sessions elsewhere: told by the host that has them, or without it; views and rows are played."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ipc.messages import Done, Refused, Show, Table
from supervisor.clock import monotonic
from supervisor.hosts.remote_stories import RemoteStories
from supervisor.journal.errors import JournalUnreachable

AWAY = JournalUnreachable("the database does not answer", "look at it")
STORY = Show("story", id="s/1")
OPEN = Table(({"session": "s", "state": "taken", "turn_state": "running", "waits": ""},), "")
FROM_THERE = Table(({"session": "s", "waits": "for the model"},), "")


class Stage:
    """`table` is the story as the journal has it; `life` is the one that has the session."""

    def __init__(self) -> None:
        self.table: Table | JournalUnreachable = OPEN
        self.life: int | JournalUnreachable = 2
        self.here: set[str] = set()
        self.lookups = 0
        self.asked: list[tuple[int, Any, Callable[[Any], None], Callable[[], None], float]] = []
        self.told: list[Any] = []
        stage: Any = self
        self.stories = RemoteStories(stage, stage, 1, stage, self.here.__contains__)

    def stand(self, *query: object) -> None: ...

    def show(self, request: Show, give: Callable[[Table], None], failed: Callable[[Any], None]) -> None:
        give(self.table) if isinstance(self.table, Table) else failed(self.table)

    def owner(self, session: str, then: Callable[[int], None], failed: Callable[[Any], None]) -> None:
        assert session == "s"
        self.lookups += 1
        then(self.life) if isinstance(self.life, int) else failed(self.life)

    def ask(
        self, life: int, request: Any, reply: Callable[[Any], None], moved: Callable[[], None], until: float
    ) -> None:
        self.asked.append((life, request, reply, moved, until))

    def why(self, request: Show = STORY) -> None:
        self.stories.show(request, self.told.append, self.told.append)


def test_the_story_of_an_open_turn_elsewhere_is_that_of_its_host() -> None:
    stage = Stage()
    stage.why()
    ((life, request, reply, _, until),) = stage.asked
    assert (life, request, stage.told) == (2, STORY, [])
    assert until <= monotonic() + 1.0, "nobody waits longer for one sentence more"
    reply(FROM_THERE)
    assert stage.told == [FROM_THERE]


@pytest.mark.parametrize("outcome", [Refused("no answer", "wait"), Done(), "moved"])
def test_a_host_that_does_not_tell_it_costs_that_sentence_only(outcome: Any) -> None:
    stage = Stage()
    stage.why()
    ((_, _, reply, moved, _),) = stage.asked
    moved() if outcome == "moved" else reply(outcome)
    assert stage.told == [OPEN]


@pytest.mark.parametrize("life", [0, 1, AWAY])
def test_a_story_whose_session_no_other_host_is_known_to_have_is_that_of_the_journal(life: Any) -> None:
    stage = Stage()
    stage.life = life
    stage.why()
    assert (stage.told, stage.asked) == ([OPEN], [])


@pytest.mark.parametrize(
    ("request_", "table", "is_here"),
    [
        (Show("turns"), OPEN, False),
        (Show("story", id="s/1", after="5"), OPEN, False),
        (STORY, OPEN, True),
        (STORY, Table(({"session": "s", "state": "taken", "turn_state": "done"},), ""), False),
        (STORY, Table((), ""), False),
    ],
)
def test_what_no_other_host_adds_to_is_told_without_a_question(
    request_: Show, table: Table, is_here: bool
) -> None:
    stage = Stage()
    stage.table = table
    if is_here:
        stage.here.add("s")
    stage.why(request_)
    assert (stage.told, stage.lookups, stage.asked) == ([table], 0, [])


def test_another_host_is_answered_with_the_story_or_with_the_reason() -> None:
    async def run() -> None:
        stage = Stage()
        stage.stories.serve(STORY, stage.told.append)
        stage.table = AWAY
        stage.stories.serve(STORY, stage.told.append)
        assert stage.told == [OPEN, Refused(AWAY.fault, AWAY.hint, code="unavailable")]
        assert not stage.asked, "it is asked because it has the session"

    asyncio.run(run())
