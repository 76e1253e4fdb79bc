"""What `hermesctl status` says that a person should check, and what it leaves out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from supervisor.clients.status_hints import Hints
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core.policy import Policy
from supervisor.core.state import Model, ModelState, Outage, State, Worker, WorkerState
from supervisor.decider import Trouble
from supervisor.host.folder_identity import FolderReplaced
from supervisor.stt.transcription import Transcription
from tests.supervisor.fixed_clock import NOW
from tests.test_agent_settings import load_text

NO_VOICE = ("there are no weights of base", "hermesctl models pull base")


@dataclass
class Desk:
    """A service in which all is well until a test says otherwise."""

    models: Path
    state: State = field(default_factory=lambda: State(Policy(), epoch=1))
    behind_seconds: float = 0.0
    fault: tuple[str, str] | None = None
    was_used: bool = False
    trouble: Trouble | None = None
    contained: float = 0.0
    agents: list[dict[str, Any]] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    environment: dict[str, str] = field(default_factory=dict)
    replaced: list[FolderReplaced] = field(default_factory=list)

    def now(self) -> float:
        return NOW

    def hints(self) -> list[str]:
        """Return those of the service, without what the settings cause."""
        return list(self.made()._of_the_service())

    def made(self) -> Hints:
        return Hints(
            state=self.state,
            clock=cast("Clock", self),
            live=Live(self.settings),
            environment=self.environment,
            models=self.models,
            transcription=cast("Transcription", self),
            trouble=lambda: self.trouble,
            replaced=lambda: self.replaced,
            contained=lambda: self.contained,
            agents=lambda: self.agents,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_service_in_which_all_is_well_has_no_hints(desk: Desk) -> None:
    assert desk.hints() == []


def test_a_clock_that_is_behind_is_told_beyond_what_is_corrected_every_day(desk: Desk) -> None:
    desk.behind_seconds = 5.0
    assert desk.hints() == []
    desk.behind_seconds = 6.0
    [told] = desk.hints()
    assert told.startswith("the clock is 6 s behind the journal's newest event; ")


@pytest.mark.parametrize("reason", ["nobody speaks", "a clip was sent", "weights are there"])
def test_voice_that_is_not_understood_is_told_to_those_who_use_it(desk: Desk, reason: str) -> None:
    desk.was_used = reason == "a clip was sent"
    if reason == "weights are there":
        (desk.models / Settings().stt.model).mkdir()
    assert desk.hints() == []
    desk.fault = NO_VOICE
    told = [f"voice is not understood: {NO_VOICE[0]}; {NO_VOICE[1]}"]
    assert desk.hints() == ([] if reason == "nobody speaks" else told)


def test_workers_that_cannot_start_are_counted_and_others_are_not(desk: Desk) -> None:
    for seat, state in enumerate((WorkerState.FAILED, WorkerState.IDLE, WorkerState.FAILED)):
        desk.state.workers[seat] = Worker(seat, seat + 1, state)
    assert desk.hints() == ["2 workers cannot start; see `hermesctl workers` for the reasons"]


def test_an_agent_is_told_by_its_own_runtime_that_failed(desk: Desk) -> None:
    """Of the default runtime the workers tell."""
    failed = {"fault": "its interpreter is gone", "hint": "install it", "state": "failed"}
    desk.agents = [
        {"agent": "one", "own_runtime": True} | failed,
        {"agent": "two", "own_runtime": False} | failed,
        {"agent": "three", "own_runtime": True} | failed | {"state": "warm"},
    ]
    assert desk.hints() == ["the agent one cannot start: its interpreter is gone; install it"]


def test_trouble_is_told_with_its_age_and_internal_errors_with_their_number(desk: Desk) -> None:
    desk.trouble = Trouble("the disk is full", "make room", NOW - 7.0)
    desk.contained = 2.0
    stuck, broken = desk.hints()
    assert stuck == "nothing is accepted for 7 s now: the disk is full; make room"
    assert broken.startswith("2 internal errors since the start; ")


def test_a_model_that_is_away_and_one_that_failed_are_told_with_their_remedy(desk: Desk) -> None:
    desk.state.model = Model(ModelState.FAILED, "there are no weights", "pull them", NOW)
    assert desk.hints() == ["the model is not available: there are no weights; pull them"]
    desk.state.model = Model(ModelState.READY)
    desk.state.outages["http://x"] = Outage(NOW - 70.0, "refused", "start it", NOW + 3.0, NOW)
    [told] = desk.hints()
    assert told.endswith(": refused; 0 turns wait; next try in 3 s; start it")


def test_replaced_folders_come_first_and_then_what_the_settings_cause(desk: Desk, tmp_path: Path) -> None:
    """A key that everybody can read, one that workers can read, and an interpreter that they may change."""
    (tmp_path / "key").write_text("k")
    (tmp_path / "key").chmod(0o644)
    (tmp_path / "venv/bin").mkdir(parents=True)
    model = "[model]\nbase_url = 'http://a/v1'\nname = 'm'\napi_key_file = 'key'\n"
    speech = "[stt]\nengine = 'openai'\nbase_url = 'http://a/v1'\napi_key_env = 'MINE'\n"
    agent = "[agents.x]\nkind = 'python'\nentry = 'a:b'\npython = 'venv/bin/python'\n"
    desk.settings = load_text(tmp_path, f"{model}{speech}{agent}[agents.x.sandbox]\nlevel = 'host'\n")
    desk.environment = {"MINE": "k"}
    desk.replaced = [FolderReplaced("the folder of clips is gone", "put it back")]
    replaced, readable, visible, exposed = desk.made()()
    assert replaced == "the folder of clips is gone, and is not followed: put it back"
    assert readable.startswith(f"the key file {tmp_path / 'key'} can be read by every user")
    assert visible.startswith("workers can read MINE, which holds a key")
    assert exposed.startswith("[agents.x] python runs outside of cells too")
