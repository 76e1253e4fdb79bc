"""SIGKILL before and after every write and every effect, in a first life and in the recovery from one."""

import signal
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from supervisor.core import effects
from tests.checker import History, check_history, check_quiet
from tests.crash.audience import Audience
from tests.crash.deaths import DEATHS
from tests.crash.lives import PATIENCE_SECONDS, Forge, Home
from tests.crash.points import ACT_OF, BEGIN, COMMIT, every_point, migration_points, sides, statement_points
from tests.crash.scenarios import all_plays, spoken

POINTS = every_point()
# Points that a later life cannot meet: the first one has made the tables.
FIRST_LIFE_ONLY = frozenset(migration_points())


# The life of one clip: every act on it alone, and each of its commits, from its acceptance to the answer.
OF_A_CLIP = [
    *((COMMIT, count) for count in range(1, 6)),
    ("MessageAccepted: message.kept", 1),
    ("answer: Accepted", 1),
    ("Transcription.transcribe", 1),
    ("TranscriptReady: transcript.ready", 1),
]


def number_of(*words: str) -> int:
    """The same for the same words, in every run."""
    return zlib.crc32(" ".join(words).encode())


@pytest.fixture
def home(tmp_path: Path, forge: Forge, record_property: Callable[[str, object], None]) -> Iterator[Home]:
    """The deaths that happened in it are counted for the end of the run (deaths.py)."""
    home = Home(tmp_path / "home", forge)
    yield home
    record_property(DEATHS, len(home.deaths()))


def settle(home: Home, audience: Audience) -> History:
    """A life without a doom plays everything to its end; then all must be as if nobody had died."""
    assert home.live(audience) == -signal.SIGKILL, home.log()
    return check_quiet(home.places.journal, audience.sights)


@pytest.mark.parametrize(("point", "when"), [(point, when) for point in POINTS for when in sides(point)])
def test_d11_a_death_at_any_point_loses_and_doubles_nothing(home: Home, point: str, when: str) -> None:
    audience = Audience(home.places, all_plays())
    assert home.dies(audience, point, when), f"{point} was not met"
    if audience.events:
        check_history(home.places.journal, audience.sights)
    settle(home, audience)


@pytest.mark.parametrize("point", [point for point in POINTS if point not in FIRST_LIFE_ONLY])
def test_d11_a_death_while_recovering_from_a_death_loses_and_doubles_nothing(home: Home, point: str) -> None:
    """The first life is cut off somewhere, the next ones at the point, which recovery or plays meet."""
    audience = Audience(home.places, all_plays())
    enough = 10 + number_of(point) % 80
    home.begin()
    audience.visit(home.has_ended, lambda: audience.events >= enough, PATIENCE_SECONDS)
    assert home.kill() == -signal.SIGKILL, home.log()
    check_history(home.places.journal, audience.sights)
    for when in sides(point):
        met = home.dies(audience, point, when)
        if not met:
            # What meets it was over in the first life: plays that begin now meet it again.
            audience.add(all_plays(f"{when}-"))
            met = home.dies(audience, point, when)
        assert met, f"{point} was not met {when} it"
        check_history(home.places.journal, audience.sights)
    settle(home, audience)


@pytest.mark.parametrize(
    ("point", "count", "when"), [(point, count, when) for point, count in OF_A_CLIP for when in sides(point)]
)
def test_c3_a_death_anywhere_in_the_life_of_a_clip_leaves_one_transcript(
    home: Home, point: str, count: int, when: str
) -> None:
    audience = Audience(home.places, {"spoken": spoken("spoken")})
    assert home.dies(audience, point, when, count), f"{point} was not met"
    history = settle(home, audience)
    assert [event["type"] for event in history.events].count("transcript.ready") == 1
    assert [row["text"] for row in history.messages] == ["say finish", "say finish"]


def test_every_point_is_met_by_the_plays(home: Home) -> None:
    audience = Audience(home.places, all_plays())
    assert home.live(audience, when="survey") == -signal.SIGKILL, home.log()
    first_life = home.passed()
    assert set(first_life) == set(POINTS)
    check_quiet(home.places.journal, audience.sights)
    audience.add(all_plays("later-"))
    assert home.live(audience, when="survey") == -signal.SIGKILL, home.log()
    later_life = home.passed()[len(first_life) :]
    assert set(later_life) == set(POINTS) - FIRST_LIFE_ONLY


def test_after_a_statement_of_a_transaction_comes_another_or_the_commit(home: Home) -> None:
    """So a death after it is a death before that one."""
    audience = Audience(home.places, all_plays())
    assert home.live(audience, when="survey") == -signal.SIGKILL, home.log()
    statements = frozenset(statement_points().values())
    written = [point for point in home.passed() if point in {*statements, BEGIN, COMMIT}]
    following = {point: set[str]() for point in statements}
    for point, after in pairwise(written):
        if point in statements:
            following[point].add(after)
    assert all(found <= {*statements, COMMIT} for found in following.values()), following
    assert all(following.values())


def test_every_effect_is_performed_at_a_point() -> None:
    known = {kind.__name__ for kind in ACT_OF}
    assert {kind.__name__ for kind in get_args(effects.Effect)} == known
    assert set(ACT_OF.values()) <= set(POINTS)
