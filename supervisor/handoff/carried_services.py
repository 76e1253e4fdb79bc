"""What one image of the supervisor leaves to the next of a service that serves: running turns may need it."""

from typing import Any

from ipc.message_parts import Part


class HandedService(Part, frozen=True):
    """A ready service. It is taken over only by a spec with the same options."""

    name: str
    options: dict[str, Any]
    incarnation: int
    identity: str
    pid: int
    log_offset: int
    started_at: float
    detail: str
    address: str

    def __repr__(self) -> str:
        """Without identity and options, which hold keys: a repr ends up in logs."""
        return f"HandedService(name={self.name!r}, pid={self.pid})"
