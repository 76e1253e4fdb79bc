"""Requests to another host that shares the journal: a wish in the row of its life, which it reads soon after.

A wish is no command that is lost with a connection: it stands until the host has carried it out or is gone.
The answer says that it is written; `Show("hosts")` shows when it is done.
"""

from collections.abc import Callable

from ipc import messages as wire
from ipc.errors import WireError
from supervisor.journal.errors import JournalError
from supervisor.journal.ownership import Ownership

Reply = Callable[[wire.Answer], None]


def ask(owners: Ownership | None, request: wire.Drain | wire.Undrain, reply: Reply) -> None:
    name = request.host
    state = "draining" if isinstance(request, wire.Drain) else "open"

    def written(is_there: bool) -> None:
        if is_there:
            reply(wire.Done(note=f"host {name} is asked to be {state}"))
        else:
            reply(wire.Refused(f"there is no host {name}", "hermesctl hosts lists them", code="unknown"))

    def failed(error: JournalError | WireError) -> None:
        reply(wire.Refused(error.fault, error.hint, code="unavailable"))

    if owners is None:
        written(False)
    else:
        owners.ask_host(name, state, written, failed)
