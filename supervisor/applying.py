"""What follows when the settings in force are others: everybody who has to act on that is told, once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from ipc.children import Sandbox
from supervisor.core import events
from supervisor.core.model import State
from supervisor.hearing import Hearing
from supervisor.live import Live
from supervisor.model_source import NAME as MODEL
from supervisor.model_source import ModelSource
from supervisor.processes.cells import Limits
from supervisor.reload import Reading
from supervisor.services import speech
from supervisor.services.services import Services
from supervisor.services.spec import ServiceSpec
from supervisor.settings import Settings
from supervisor.terms import limits, policy, sandboxes


class Engine(Protocol):
    @property
    def state(self) -> State: ...
    def post(self, event: events.Event) -> None: ...


class Applying:
    """`change_limits` is for workers that are still to be made; `stt` is the speech service as it is now."""

    def __init__(
        self,
        *,
        live: Live,
        engine: Engine,
        model: ModelSource,
        services: Services,
        hearing: Hearing,
        stt: ServiceSpec | None,
        change_limits: Callable[[Limits], None],
    ) -> None:
        self._live = live
        self._engine = engine
        self._model = model
        self._services = services
        self._hearing = hearing
        self._stt = stt
        self._change_limits = change_limits

    def __call__(self, old: Settings, new: Reading) -> None:
        settings, spec = self._live.settings, self._model.spec
        wanted = policy(settings)
        if settings.workers.seats == old.workers.seats:  # who has scaled since then has not been overruled
            wanted = replace(wanted, busy_seats=self._engine.state.policy.busy_seats)
        # First: turns that go on because the model is another one ask the endpoint of the new policy.
        self._engine.post(events.PolicyChanged(wanted))
        self._model.change(new.endpoint)
        if self._model.spec is not spec:
            self._services.change(MODEL, self._model.spec)
        if new.stt != self._stt:
            self._stt = new.stt
            self._hearing.expect_end()
            self._services.change(speech.NAME, new.stt)
        if limits(settings) != limits(old):
            self._change_limits(limits(settings))
            self._engine.post(events.RenewalAsked())
        elif changed := _changed(sandboxes(old), sandboxes(settings)):
            self._engine.post(events.RenewalAsked(changed))


def _changed(before: Mapping[str, Sandbox], after: Mapping[str, Sandbox]) -> frozenset[str]:
    """Agents whose sandbox is another one now. One that is new has no workers yet."""
    return frozenset(agent for agent in before if after.get(agent) != before[agent])
