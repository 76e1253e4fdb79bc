"""SIGKILL before and after every write and every effect, in a first life and in the recovery from one."""

import signal
import sys
import zlib
from pathlib import Path
from typing import get_args

import pytest

from supervisor.core import effects
from tests.checker import History, check_history, check_quiet
from tests.crash.audience import Audience
from tests.crash.lives import PATIENCE_SECONDS, Forge, Home
from tests.crash.points import ACT_OF, COMMIT, every_point
from tests.crash.scenarios import all_plays, spoken

POINTS = every_point()
SIDES = ("before", "after")


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
def home(tmp_path: Path, forge: Forge) -> Home:
    return Home(tmp_path / "home", forge)


def settle(home: Home, audience: Audience) -> History:
    """A life without a doom plays everything to its end; then all must be as if nobody had died."""
    assert home.live(audience) == -signal.SIGKILL, home.log()
    return check_quiet(home.places.journal, audience.sights)


@pytest.mark.parametrize("when", SIDES)
@pytest.mark.parametrize("point", POINTS)
def test_d11_a_death_at_any_point_loses_and_doubles_nothing(home: Home, point: str, when: str) -> None:
    audience = Audience(home.places, all_plays())
    assert home.live(audience, point, when) == -signal.SIGKILL, home.log()
    assert not audience.is_content, f"{point} was not met"
    if audience.events:
        check_history(home.places.journal, audience.sights)
    settle(home, audience)


@pytest.mark.parametrize("point", POINTS)
def test_d11_a_death_while_recovering_from_a_death_loses_and_doubles_nothing(home: Home, point: str) -> None:
    """The first life is cut off somewhere, the next two at the point, if recovery or plays meet it."""
    audience = Audience(home.places, all_plays())
    enough = 10 + number_of(point) % 80
    home.begin()
    audience.visit(home.has_ended, lambda: audience.events >= enough, PATIENCE_SECONDS)
    assert home.kill() == -signal.SIGKILL, home.log()
    check_history(home.places.journal, audience.sights)
    for when in SIDES:
        assert home.live(audience, point, when) == -signal.SIGKILL, home.log()
        check_history(home.places.journal, audience.sights)
    settle(home, audience)


@pytest.mark.parametrize("when", SIDES)
@pytest.mark.parametrize(("point", "count"), OF_A_CLIP)
def test_c3_a_death_anywhere_in_the_life_of_a_clip_leaves_one_transcript(
    home: Home, point: str, count: int, when: str
) -> None:
    audience = Audience(home.places, {"spoken": spoken("spoken")})
    assert home.live(audience, point, when, count) == -signal.SIGKILL, home.log()
    assert not audience.is_content, f"{point} was not met"
    history = settle(home, audience)
    assert [event["type"] for event in history.events].count("transcript.ready") == 1
    assert [row["text"] for row in history.messages] == ["say finish", "say finish"]


def test_every_point_is_met_by_the_plays(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    audience = Audience(home.places, all_plays())
    assert home.live(audience, when="survey") == -signal.SIGKILL, home.log()
    passed = home.passed()
    assert set(passed) == set(POINTS)
    history = check_quiet(home.places.journal, audience.sights)
    with capsys.disabled():
        # Standard error is the one way to the terminal from a process of pytest-xdist.
        print(
            f"\ncrash: {len(POINTS)} points, killed before and after each, in a first and in a later life: "
            f"{4 * len(POINTS)} deaths; one life passes {len(passed)} of them: {history.counts()}",
            file=sys.stderr,
        )


def test_every_effect_is_performed_at_a_point() -> None:
    known = {kind.__name__ for kind in ACT_OF}
    assert {kind.__name__ for kind in get_args(effects.Effect)} == known
    assert set(ACT_OF.values()) <= set(POINTS)
