"""Checks that a session exists: commands that read or act on one refuse a name without any message."""

from hermesctl.client import Client
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import quoted
from ipc.messages import Show, Subscribe, Subscribed, Unsubscribe
from ipc.places import Places

# The nearest name is searched among the sessions that were used last.
_NAMES_MAX = 1000


def require_session(places: Places, session: str) -> None:
    """Ends the command when there is no such session."""
    client = Client(places)
    try:
        number = client.post(Subscribe(session))
        # The seq of a session never returns to 0, whatever the journal prunes.
        if client.answer_to(number, Subscribed).seq == 0:
            raise no_such_session(client, session)
        client.post(Unsubscribe(number))
    finally:
        client.close()


def no_such_session(client: Client, session: str) -> CommandError:
    """The error of the command; the hint names the most similar session."""
    import difflib

    rows = client.rows(Show("sessions", limit=_NAMES_MAX), _NAMES_MAX)
    near = difflib.get_close_matches(session, [str(row["session"]) for row in rows], n=1)
    hint = f"did you mean {near[0]}?" if near else "hermesctl sessions lists them; hermesctl send begins one"
    return CommandError(f"there is no session {quoted(session)}", hint, Exit.REFUSED)
