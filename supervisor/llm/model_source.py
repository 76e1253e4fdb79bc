"""The models of turns: endpoints of the settings, and the embedded one while it is ready."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ipc.messages import ModelEndpoint
from supervisor.config.model_settings import DEFAULT_MODEL, EMBEDDED
from supervisor.core import events
from supervisor.core.state import ModelState
from supervisor.llm.embedded import CONTEXT_TOKENS, MODEL_NAME, EmbeddedModel, embedded_model
from supervisor.services.service import ServiceChanged
from supervisor.services.service_spec import ServiceSpec

NAME = "model"


class ModelSource:
    """`post` sends events to the core."""

    def __init__(
        self,
        endpoint: ModelEndpoint | None,
        named: Mapping[str, ModelEndpoint],
        models: Path,
        post: Callable[[events.Event], None],
        key: str = "",
        weights: str = MODEL_NAME,
    ) -> None:
        """`key` opens an embedded model that an earlier image of this process left running.

        `endpoint` is that of [model], `named` are those of [models.NAME]; `weights` are the embedded model's.
        """
        self._models = models
        self._key = key
        self._weights = weights
        self._post = post
        self._state = ModelState.WAITING
        self._embedded: EmbeddedModel | None = None
        self.endpoint: ModelEndpoint | None = None
        self._named = dict(named)
        self._take(endpoint)

    @property
    def spec(self) -> ServiceSpec | None:
        """Return the service that is needed; None with an endpoint of the settings."""
        return self._embedded.spec if self._embedded else None

    @property
    def name(self) -> str:
        return self.endpoint.name if self.endpoint else EMBEDDED

    def describe(self) -> str:
        if self._embedded:
            return f"embedded {self._embedded.name} (a demonstration), {self._state.value}"
        return f"{self.endpoint.name} at {self.endpoint.base_url}" if self.endpoint else self._state.value

    def of(self, names: Iterable[str]) -> tuple[ModelEndpoint, ...]:
        """Return the endpoints of these models; an embedded model that is not ready has none."""
        found = (self.endpoint if name == DEFAULT_MODEL else self._named.get(name) for name in names)
        return tuple(endpoint for endpoint in found if endpoint is not None)

    def open(self) -> None:
        """Tell the core what is known at the start."""
        if self.endpoint is not None:
            self._change(events.ModelChanged(ModelState.READY))

    def change(self, endpoint: ModelEndpoint | None, named: Mapping[str, ModelEndpoint]) -> None:
        """Use other endpoints, or the embedded model; running turns keep the ones they have."""
        self._named = dict(named)
        was_embedded = self._embedded is not None
        if endpoint is None and was_embedded:
            return
        self._take(endpoint)
        self._change(events.ModelChanged(ModelState.READY if endpoint else ModelState.WAITING))

    def service_changed(self, changed: ServiceChanged) -> None:
        """What the state of the embedded model's service means for turns."""
        embedded = self._embedded
        if embedded is None:
            return
        if changed.state == "ready":
            self.endpoint = ModelEndpoint(
                changed.address,
                embedded.name,
                embedded.api_key,
                id=EMBEDDED,
                context_tokens=CONTEXT_TOKENS,
            )
            self._change(events.ModelChanged(ModelState.READY))
            print("the embedded model is ready", file=sys.stderr, flush=True)
        elif changed.state in ("failed", "waiting"):
            self._change(events.ModelChanged(ModelState.FAILED, changed.detail, changed.hint))
        elif self._state is not ModelState.FAILED:
            # A failed service is retried; until it is ready, its fault is the better answer.
            self._change(events.ModelChanged(ModelState.WAITING))

    def _take(self, endpoint: ModelEndpoint | None) -> None:
        self.endpoint = endpoint
        self._embedded = None if endpoint else embedded_model(self._models, self._key, self._weights)

    def _change(self, changed: events.ModelChanged) -> None:
        self._state = changed.state
        self._post(changed)
