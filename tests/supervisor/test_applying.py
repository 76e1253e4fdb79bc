"""Settings that were read again are put in force: which services change, and which workers are renewed."""

from pathlib import Path
from typing import cast

import pytest

from ipc.places import Places
from supervisor.config.applying import Applying
from supervisor.config.derived import policy
from supervisor.config.live import Live
from supervisor.config.reload import Reading, kept, read
from supervisor.core.events import Event, ModelChanged, PolicyChanged, RenewalAsked
from supervisor.core.policy import Policy
from supervisor.core.state import State
from supervisor.llm.model_source import ModelSource
from supervisor.processes.cells import Limits
from supervisor.services.service_spec import ServiceSpec
from supervisor.services.services import Services
from supervisor.stt.transcription import Transcription

MODEL = "[model]\nbase_url = 'http://127.0.0.1:9/v1'\nname = 'm'\n"
STT_OFF = "[stt]\nengine = 'off'\n"
STT = "[stt]\nengine = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\nmodel = 'whisper'\n"
AGENTS = "[agents.coder]\n[agents.reader]\n"


class Desk:
    """Everything that settings are applied to; what it is told is kept."""

    def __init__(self, home: Path, before: str) -> None:
        self._places = Places(home, home, home)
        self.events: list[Event] = []
        self.services: list[tuple[str, ServiceSpec | None]] = []
        self.limits: list[Limits] = []
        self.expected_ends = 0
        self.told: list[str] = []
        self.agents_changed = 0
        reading = self._read(before)
        self._live = Live(reading.settings)
        self.state = State(policy(reading.settings))
        model = ModelSource(reading.endpoint, reading.named, self._places.models, self.post)
        self._applying = Applying(
            live=self._live,
            engine=self,
            model=model,
            services=cast("Services", self),
            transcription=cast("Transcription", self),
            stt=reading.stt,
            gateway=reading.gateway,
            change_limits=self.limits.append,
            change_agents=self._change_agents,
        )

    def post(self, event: Event) -> None:
        self.events.append(event)

    def change(self, name: str, spec: ServiceSpec | None) -> None:
        self.services.append((name, spec))
        self.told.append(f"change {name}")

    def expect_end(self) -> None:
        self.expected_ends += 1
        self.told.append("expect end")

    def _change_agents(self) -> None:
        self.agents_changed += 1

    def _read(self, text: str) -> Reading:
        self._places.settings_file.write_text(text)
        return read(self._places)

    def reload(self, text: str) -> list[RenewalAsked]:
        """The renewals that a change of the settings asks for."""
        old, found = self._live.settings, self._read(text)
        self._live.settings = kept(old, found.settings)
        self.events.clear()
        self._applying(old, found)
        assert isinstance(self.events[0], PolicyChanged), "before all that depends on it"
        return [event for event in self.events if isinstance(event, RenewalAsked)]

    @property
    def policy(self) -> Policy:
        return next(event.policy for event in self.events if isinstance(event, PolicyChanged))


PLAIN = MODEL + STT_OFF + AGENTS
# An agent that gets servers gets another runtime, too.
ALL = frozenset({"coder", "default", "reader"})


@pytest.mark.parametrize(
    ("added", "renewals"),
    [
        ("", []),
        ("[workers]\nprocesses_max = 99\n", [RenewalAsked()]),
        ("[agents.coder.sandbox]\nnetwork = 'none'\n", [RenewalAsked(frozenset({"coder"}))]),
        ("[mcp.time]\ncommand = ['clock']\n", [RenewalAsked(ALL), RenewalAsked(ALL, at_once=True)]),
        ("[agents.more]\n", []),
        ("[agents.more]\nkind = 'acp'\ncommand = ['x']\n", []),
    ],
    ids=["nothing", "limits", "a sandbox", "servers", "an agent", "another kind"],
)
def test_workers_with_other_settings_are_renewed(
    tmp_path: Path, added: str, renewals: list[RenewalAsked]
) -> None:
    desk = Desk(tmp_path, PLAIN)
    assert desk.reload(PLAIN + added) == renewals
    assert bool(desk.limits) == ("processes_max" in added)
    assert (desk.services, desk.expected_ends, desk.agents_changed) == ([], 0, 1)


def test_an_agent_of_another_kind_leaves_its_runtime_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PLAIN)
    other = PLAIN.replace("[agents.coder]\n", "[agents.coder]\nkind = 'acp'\ncommand = ['x']\n")
    assert RenewalAsked(frozenset({"coder"}), at_once=True) in desk.reload(other)


def test_the_stt_service_is_replaced_when_its_settings_change_and_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PLAIN)
    desk.reload(MODEL + STT)
    desk.reload(MODEL + STT)
    [(name, spec)] = desk.services
    assert name == "stt"
    assert spec is not None
    desk.reload(MODEL + STT_OFF)
    assert desk.services[1:] == [("stt", None)]
    assert desk.expected_ends == 2


def test_seats_change_with_their_key_and_a_later_scale_is_not_overruled(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PLAIN + "[workers]\ncount = 2\n")
    desk.state = State(Policy(busy_seats=7))
    desk.reload(PLAIN + "[workers]\ncount = 2\nspares = 0\n")
    assert desk.policy.busy_seats == 7
    desk.reload(PLAIN + "[workers]\ncount = 3\n")
    assert desk.policy.busy_seats == 3


def test_another_model_is_told_after_the_policy(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PLAIN)
    desk.reload(PLAIN.replace("name = 'm'", "name = 'other'"))
    assert [type(event) for event in desk.events] == [PolicyChanged, ModelChanged]


@pytest.mark.parametrize(
    ("name", "text"), [("stt", STT), ("gateway", "[gateway]\nlisten = '127.0.0.1:8000'\n")]
)
def test_a_service_is_changed_once_for_each_change(tmp_path: Path, name: str, text: str) -> None:
    off = {"stt": STT_OFF, "gateway": "[gateway]\nlisten = 'off'\n"}
    desk = Desk(tmp_path, MODEL + "".join(off.values()))
    changed = MODEL + "".join({**off, name: text}.values())
    for _ in range(2):
        desk.reload(changed)
        assert [each for each, _ in desk.services] == [name]


def test_the_end_of_the_stt_service_is_expected_before_it_comes(tmp_path: Path) -> None:
    """Else the clip in work would pay for it."""
    desk = Desk(tmp_path, PLAIN)
    desk.reload(MODEL + STT)
    assert desk.told == ["expect end", "change stt"]


def test_the_service_of_the_embedded_model_runs_while_there_is_no_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PLAIN)
    desk.reload(STT_OFF + AGENTS)
    [(name, spec)] = desk.services
    assert name == "model"
    assert spec is not None
    desk.reload(PLAIN)
    assert desk.services[1:] == [("model", None)]
