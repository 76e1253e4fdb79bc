"""The limits of an attempt, from [budgets] and from what the journal knows of uses and consents."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import BudgetLimit
from supervisor.config.live import Live
from supervisor.config.settings import load
from supervisor.config.toml_file import SettingsError
from supervisor.core.events import AnswerArrived, Asked, Finished
from supervisor.journal.journal import Journal
from supervisor.workers.budget_limits import BudgetLimits
from tests.journal.conftest import open_in
from tests.journal.lives import Life

TURN, SESSION, DAY = (f"[budgets.{scope}]\ntokens_max = 10\n" for scope in ("turn", "session", "day"))


class Spending:
    """Sessions whose turns use ten tokens each."""

    def __init__(self, journal: Journal, folder: Path, budgets: str) -> None:
        file = folder / "hermes.toml"
        file.write_text(budgets)
        self._life = Life(journal, now=time.time())
        self._life.ready(0)
        self._life.ready(1)
        self._limits = BudgetLimits(journal.read, Live(load(file)))
        self._messages = 0

    def limits(self, session: str, number: int) -> tuple[BudgetLimit, ...]:
        return self._limits.of(session, f"{session}/{number}")

    def allowed(self, session: str, number: int) -> int:
        [limit] = self.limits(session, number)
        return limit.allowed

    def turn(self, session: str, number: int) -> None:
        """A turn from its first message to its end."""
        self._open(session)
        self._end(f"{session}/{number}", 1)

    def answer(self, session: str, number: int, answer: str) -> tuple[int, ...]:
        """A turn asks for a consent to go on. Returns what is then allowed to it, and to the session `t`."""
        turn, [limit] = f"{session}/{number}", self.limits(session, number)
        seat = self._open(session)
        question = limit.question(limit.times_reached())
        self._life.tell(Asked(self._life.who(seat), turn, 1, "", "approve", question, ("yes", "no")))
        self._life.ready(seat)
        self._life.tell(AnswerArrived(session, f"{turn}#1", answer, "somebody"))
        found = self.allowed(session, number), self.allowed("t", 2)
        self._end(turn, 2)
        return found

    def _open(self, session: str) -> int:
        self._messages += 1
        self._life.say(f"m{self._messages}", "go", session=session)
        return self._life.busy_seat()

    def _end(self, turn: str, attempt: int) -> None:
        seat = self._life.busy_seat()
        self._life.tell(Finished(self._life.who(seat), turn, attempt, "done", 4, 6))
        self._life.died(seat)
        self._life.ready(seat)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_in(tmp_path)
    yield opened
    opened.close()


def test_without_budgets_there_are_no_limits(journal: Journal, tmp_path: Path) -> None:
    assert Spending(journal, tmp_path, "").limits("s", 1) == ()


@pytest.mark.parametrize(
    ("keys", "limits"),
    [
        ("tokens_max = 10\n", {"tokens": 10}),
        ("cost_max = 0.5\n", {"cost": 500_000}),
        ("cost_max = 0.0000001\n", {"cost": 1}),
        ("tokens_max = 10\ncost_max = 2\n", {"tokens": 10, "cost": 2_000_000}),
        ("", {}),
    ],
)
def test_a_budget_limits_what_its_keys_name(tmp_path: Path, keys: str, limits: dict[str, int]) -> None:
    (tmp_path / "hermes.toml").write_text(f"[budgets.turn]\n{keys}")
    assert load(tmp_path / "hermes.toml").budgets["turn"].limits == limits


@pytest.mark.parametrize("keys", ["[budgets.turn]\ntokens_max = 0\n", "[budgets.week]\ntokens_max = 10\n"])
def test_a_budget_of_nothing_or_of_an_unknown_scope_is_refused(tmp_path: Path, keys: str) -> None:
    (tmp_path / "hermes.toml").write_text(keys)
    with pytest.raises(SettingsError, match="budgets"):
        load(tmp_path / "hermes.toml")


def test_a_limit_counts_what_its_scope_has_used(journal: Journal, tmp_path: Path) -> None:
    spending = Spending(journal, tmp_path, TURN + SESSION + DAY)
    spending.turn("t", 1)
    spending.turn("s", 1)
    limits = spending.limits("s", 2)
    assert [(limit.scope, limit.used, limit.most, limit.allowed) for limit in limits] == [
        ("turn", 0, 10, 0),
        ("session", 10, 10, 0),
        ("day", 20, 10, 0),
    ]
    assert [bool(limit.day) for limit in limits] == [False, False, True]


def test_a_consent_of_a_session_is_no_consent_of_another(journal: Journal, tmp_path: Path) -> None:
    spending = Spending(journal, tmp_path, SESSION)
    spending.turn("s", 1)
    spending.turn("t", 1)
    assert spending.answer("s", 2, "yes") == (1, 0)
    assert spending.allowed("s", 3) == 0, "twice as much is another question"


def test_a_consent_of_the_day_holds_for_every_session_and_a_no_for_none(
    journal: Journal, tmp_path: Path
) -> None:
    spending = Spending(journal, tmp_path, DAY)
    spending.turn("t", 1)
    assert spending.answer("s", 1, "no") == (0, 0)
    assert spending.answer("s", 2, "yes") == (2, 2)


def test_the_answers_of_a_turn_are_in_its_assign(journal: Journal, tmp_path: Path) -> None:
    """They are not looked up: the attempt that asks again finds the answer itself."""
    spending = Spending(journal, tmp_path, TURN)
    seat = spending._open("s")
    [limit] = spending.limits("s", 1)
    asked = Asked(
        spending._life.who(seat), "s/1", 1, "", "approve", limit.question(1), ("yes", "no"), 0, 4, 6
    )
    spending._life.tell(asked)
    spending._life.ready(seat)
    spending._life.tell(AnswerArrived("s", "s/1#1", "yes", "somebody"))
    [limit] = spending.limits("s", 1)
    assert (limit.used, limit.times_reached(), limit.allowed) == (10, 1, 0)
