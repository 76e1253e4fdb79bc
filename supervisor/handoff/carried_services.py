"""A ready service, as one image of the supervisor hands it to the next: running turns may need it."""

from typing import Any

from ipc.message_parts import Part


class HandedService(Part, frozen=True):
    """A ready service. Only a spec with the same options takes it over, and may ask for the same version."""

    name: str
    options: dict[str, Any]
    incarnation: int
    identity: str
    pid: int
    log_offset: int
    started_at: float
    detail: str
    address: str
    # Of the image that started it, or took it over; one of an earlier version does not send it.
    version: str = ""

    def __repr__(self) -> str:
        """Omit identity and options, which hold keys: a repr ends up in logs."""
        return f"HandedService(name={self.name!r}, pid={self.pid})"
