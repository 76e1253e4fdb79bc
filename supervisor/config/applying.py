"""Applies reloaded settings: notifies each part that depends on a changed value, once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from supervisor import gateway_spec
from supervisor.config.derived import limits, policy, runtimes, sandboxes
from supervisor.config.live import Live
from supervisor.config.reload import Reading
from supervisor.config.settings import Settings
from supervisor.core import events
from supervisor.event_sink import StatefulSink
from supervisor.llm.model_source import NAME as MODEL
from supervisor.llm.model_source import ModelSource
from supervisor.processes.cells import Limits
from supervisor.services.service_spec import ServiceSpec
from supervisor.services.services import Services
from supervisor.stt import stt_spec
from supervisor.stt.transcription import Transcription

_Value = TypeVar("_Value")


class Applying:
    """`change_limits` and `change_agents` apply to workers not yet started.

    `stt` and `gateway` are the services of now.
    """

    def __init__(
        self,
        *,
        live: Live,
        engine: StatefulSink,
        model: ModelSource,
        services: Services,
        transcription: Transcription,
        stt: ServiceSpec | None,
        gateway: ServiceSpec | None,
        change_limits: Callable[[Limits], None],
        change_agents: Callable[[], None],
    ) -> None:
        self._live = live
        self._engine = engine
        self._model = model
        self._services = services
        self._transcription = transcription
        self._stt = stt
        self._gateway = gateway
        self._change_limits = change_limits
        self._change_agents = change_agents

    def __call__(self, old: Settings, new: Reading) -> None:
        settings, spec = self._live.settings, self._model.spec
        wanted = policy(settings)
        if settings.workers.seats == old.workers.seats:  # a later `scale` is not overruled
            wanted = replace(wanted, busy_seats=self._engine.state.policy.busy_seats)
        # First: turns that continue because the model changed use the endpoint of the new policy.
        self._engine.post(events.PolicyChanged(wanted))
        self._model.change(new.endpoint, new.named)
        if self._model.spec is not spec:
            self._services.change(MODEL, self._model.spec)
        if new.stt != self._stt:
            self._stt = new.stt
            self._transcription.expect_end()
            self._services.change(stt_spec.NAME, new.stt)
        if new.gateway != self._gateway:
            self._gateway = new.gateway
            self._services.change(gateway_spec.NAME, new.gateway)
        if limits(settings) != limits(old):
            self._change_limits(limits(settings))
            self._engine.post(events.RenewalAsked())
        elif changed := _changed(sandboxes(old), sandboxes(settings)) | _changed(
            _servers(old), _servers(settings)
        ):
            self._engine.post(events.RenewalAsked(changed))
        if moved := _changed(runtimes(old), runtimes(settings)):
            self._engine.post(events.RenewalAsked(moved, at_once=True))
        self._change_agents()


def _servers(settings: Settings) -> dict[str, object]:
    """Return the MCP servers of every agent; they start with its workers."""
    return {agent: settings.servers_of(agent) for agent in settings.agents}


def _changed(before: Mapping[str, _Value], after: Mapping[str, _Value]) -> frozenset[str]:
    """Return the agents whose value changed. A new agent has no workers yet."""
    return frozenset(agent for agent in before if after.get(agent) != before[agent])
