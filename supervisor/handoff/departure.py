"""Departure: the last steps of an image that is replaced in place; running turns are not affected."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ipc import paging
from ipc.codec import VERSION
from ipc.errors import PlaceError
from ipc.messages import Answer, Refused
from supervisor import gateway_spec
from supervisor.core import effects, events
from supervisor.core.kept_turns import keepable
from supervisor.event_sink import HaltingSink
from supervisor.handoff.handover import Handover, fault_of_next_image
from supervisor.host.folder_identity import Identity
from supervisor.llm.model_source import NAME as MODEL
from supervisor.process_pool import ProcessPool
from supervisor.services.services import Services
from supervisor.workers.router import Router

# With the model, the services that people would miss: connections to the gateway stay.
_KEPT_SERVICES = (gateway_spec.NAME,)


class Folders(Protocol):
    @property
    def known(self) -> dict[str, Identity]: ...
    def check_all(self) -> None: ...


class Departure:
    """`again` are the arguments by which the next image finds the same instance."""

    def __init__(
        self,
        *,
        engine: HaltingSink,
        router: Router,
        processes: ProcessPool,
        services: Services,
        folders: Folders,
        environment: dict[str, str],
        again: Sequence[str],
    ) -> None:
        self._engine = engine
        self._router = router
        self._processes = processes
        self._services = services
        self._folders = folders
        self._environment = environment
        self._again = again

    async def ask(self, reply: Callable[[Answer], None], then: Callable[[], None]) -> None:
        """Try the next image beside this one first: one that cannot start must not cost a turn."""
        try:
            self._folders.check_all()
        except PlaceError as error:
            reply(Refused(error.fault, f"{error.hint}; nothing was changed", code="unavailable"))
            return
        if stuck := len(self._engine.state.stuck):
            fault = f"of {stuck} killed worker{'s' * (stuck > 1)} a process is left that cannot be ended"
            hint = "restart when it is gone: `hermesctl workers` shows it"
            reply(Refused(fault, hint, 5.0, "conflict"))
            return
        if fault := await fault_of_next_image(self._again):
            fault = f"the next start would fail: {fault}"
            reply(Refused(fault, "fix that; nothing was changed", code="unavailable"))
            return

        def decided(answer: effects.Answer) -> None:
            reply(paging.done(answer.turns if isinstance(answer, effects.Done) else ()))
            then()

        self._engine.post(events.HandOverAsked(), decided)

    async def gather(self, deadline_seconds: float) -> Handover:
        """Collect the handover. Nothing is decided any more: clients repeat what is not in the journal."""
        await self._engine.halt()
        state = self._engine.state
        kept = keepable(state)
        # First: a worker that has closed its link is not kept, and so ends.
        lines = self._router.hand_over(one.incarnation for one in kept)
        handed = await self._processes.hand_over(lines.keys(), deadline_seconds)
        return Handover(
            protocol=VERSION,
            epoch=state.epoch,
            incarnations=state.incarnations,
            kept=kept,
            lines=lines,
            processes=handed,
            model=self._services.hand_over(MODEL),
            services=tuple(filter(None, map(self._services.hand_over, _KEPT_SERVICES))),
            environment=self._environment,
            folders=self._folders.known,
        )
