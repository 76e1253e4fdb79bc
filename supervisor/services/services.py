"""All services of a supervisor and their socket; a frame of an identity that is not running is stale."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ipc.codec import Decoder
from ipc.errors import WireError
from ipc.messages import Beat
from ipc.places import make_private
from ipc.server import Server
from ipc.service_messages import FromService, ServiceState
from ipc.stt_messages import FromStt
from ipc.time_budgets import SERVICE_OWN_END_SECONDS
from ipc.zmtp import Sent
from supervisor.containment import Containment, Fault
from supervisor.handoff.carried_services import HandedService
from supervisor.services.child import Child
from supervisor.services.service import Service, ServiceChanged
from supervisor.services.service_spec import ServiceSpec

Report = Callable[[ServiceChanged], None]
# The service's name and its message about a clip; False when that service has none to speak of.
ClipTold = Callable[[str, FromStt], bool]


def _has_no_clips(service: str, message: FromStt) -> bool:
    return False


class Services:
    """Starts every service, restarts it, and ends them all. Use it from the loop of the main thread."""

    def __init__(
        self,
        specs: Iterable[ServiceSpec],
        *,
        endpoint: str,
        logs: Path,
        report: Report,
        contain: Containment,
        clip_told: ClipTold = _has_no_clips,
        check: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        """`check` raises PlaceError when the folder of logs was replaced."""
        self._specs = tuple(specs)
        self._endpoint = endpoint
        self._logs = logs
        self._check = check
        self._report = report
        self._clip_told = clip_told
        self._receive_contained = contain.around("service", self._receive, self._not_received)
        self._decoder: Decoder[FromService] = Decoder(FromService)
        self._services: dict[str, Service] = {}
        self._socket: Server | None = None
        self._changed = asyncio.Event()

    def open(self, handed: Sequence[HandedService] = ()) -> None:
        """Start every process without waiting for readiness, which is reported; `rows` lists them all.

        `handed` are processes of an earlier image; those of services that are not wanted any more are ended.
        """
        make_private(self._logs)
        self._socket = Server(self._endpoint, self._receive_contained)
        left = {each.name: each for each in handed}
        for spec in self._specs:
            service = self._make(spec)
            if spec.name in left:
                service.take_over(left.pop(spec.name))
            else:
                service.start()
        for each in left.values():
            Child.take_over(each, self._logs / f"{each.name}.log", ended=lambda status: None).kill()

    def change(self, name: str, spec: ServiceSpec | None) -> None:
        """Replace the service of that name by another one, or remove it."""
        service = self._services.get(name)
        if spec is None:
            if service is not None:
                service.ask_to_end()
                service.kill()
        elif service is not None:
            service.renew(spec)
        else:
            self._make(spec).start()

    def _make(self, spec: ServiceSpec) -> Service:
        log = self._logs / f"{spec.name}.log"
        service = self._services[spec.name] = Service(
            spec, self._endpoint, log, self._note, lambda: self._check(self._logs)
        )
        return service

    def rows(self) -> list[dict[str, Any]]:
        return [service.row() for service in self._services.values()]

    def send(self, name: str, frame: bytes) -> Sent:
        """Send a frame to the running process of a service that has a protocol beyond states and beats."""
        service = self._services[name]
        if self._socket is None or not service.identity:
            return Sent.GONE
        return self._socket.send([service.identity.encode(), frame])

    def end(self, name: str, detail: str, hint: str) -> None:
        """Kill the running process of a service for a reason; another one follows."""
        self._services[name].end(detail, hint)

    def hand_over(self, name: str) -> HandedService | None:
        """Detach a service for the next image of the supervisor; `close` does not end it any more."""
        service = self._services.get(name)
        return service.hand_over() if service is not None else None

    async def close(self, deadline_seconds: float) -> None:
        """Ask all to end, soon kill those that have not ended, and return by the deadline."""
        for service in self._services.values():
            service.ask_to_end()
        own_seconds = min(SERVICE_OWN_END_SECONDS, deadline_seconds / 2)
        await self._all_ended(own_seconds)
        for service in self._services.values():
            service.kill()
        await self._all_ended(deadline_seconds - own_seconds)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _all_ended(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while any(service.alive for service in self._services.values()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    def _note(self, changed: ServiceChanged) -> None:
        self._changed.set()
        self._report(changed)

    def _receive(self, parts: list[bytes]) -> None:
        if len(parts) != 2:
            return
        identity, frame = parts
        service = self._speaker(identity)
        if service is None:
            return
        try:
            message = self._decoder.decode(frame)
        except WireError as error:
            service.end(f"it sent what cannot be read: {error.fault}", error.hint)
            return
        if isinstance(message, ServiceState | Beat):
            service.received(message)
        elif not self._clip_told(service.name, message):
            service.end("it spoke of a clip, and it has none", "see docs/protocol.md for the messages")

    def _not_received(self, fault: Fault, parts: list[bytes]) -> None:
        """Serving its frame raised: end the service's process; another one follows."""
        service = self._speaker(parts[0])
        if service is not None:
            service.end(f"it sent a frame that cannot be served: {fault.error}", fault.hint)

    def _speaker(self, identity: bytes) -> Service | None:
        """Return the service with this identity. A search among a few is cheaper than a second table."""
        name = identity.decode(errors="replace")
        return next((one for one in self._services.values() if one.identity and one.identity == name), None)
