"""Whether a session exists: commands that read or act on one refuse a name that nothing was ever said to."""

from hermesctl.client import Client
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import quoted
from ipc.messages import Follow, Following, Show, Unfollow
from ipc.places import Places

# Names among which the nearest is looked for: those of the sessions that were used last.
_NAMES_MAX = 1000


def require_session(places: Places, session: str) -> None:
    """Ends the command when there is no such session."""
    client = Client(places)
    try:
        number = client.post(Follow(session))
        # The feed of a session never goes back to 0, whatever the journal forgets.
        if client.answer_to(number, Following).seq == 0:
            raise no_such_session(client, session)
        client.post(Unfollow(number))
    finally:
        client.close()


def no_such_session(client: Client, session: str) -> CommandError:
    """What a command ends with; the hint names the session that was probably meant."""
    import difflib

    rows = client.rows(Show("sessions", limit=_NAMES_MAX), _NAMES_MAX)
    near = difflib.get_close_matches(session, [str(row["session"]) for row in rows], n=1)
    hint = f"did you mean {near[0]}?" if near else "hermesctl sessions lists them; hermesctl send begins one"
    return CommandError(f"there is no session {quoted(session)}", hint, Exit.REFUSED)
