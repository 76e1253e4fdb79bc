"""`hermesctl retry`: submits the messages of a turn, or a clip, again and waits for the answer."""

import os

import click

from hermesctl import completing
from hermesctl.answer_stream import JsonLines, PlainText, Shown
from hermesctl.ctrlc import CtrlC
from hermesctl.errors import CommandError
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name
from hermesctl.sending import Sending, tell_accepted
from hermesctl.session_check import no_such_session
from hermesctl.show_rows import read
from ipc.messages import Accepted, Retry, Show
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl turns --state poison
  hermesctl retry demo/3
  hermesctl retry demo/3 --no-wait
  hermesctl retry m_5f0c6c1d2e3f4a5b6c7d

\b
Exit codes: 0 answered, 3 interrupted, 4 the turn failed or the clip was not understood, 5 refused.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("what", **name("TURN|MESSAGE"), shell_complete=completing.unhappy_turns)
@click.option(
    "--no-wait", "until", flag_value="accepted", default="end", help="Print the message's id and leave."
)
@click.option("--json", "form", flag_value="json", default="words", help="Print one event a line.")
@click.pass_obj
def retry(places: Places, what: str, until: str, form: str) -> int:
    """Submit the messages of a failed or interrupted turn again.

    They join the end of the session's queue; the old turn stays as it ended. A message
    whose clip was not understood is transcribed again.
    """
    if "/" not in what and not what.startswith("m_"):
        raise click.UsageError("a turn is named SESSION/N, for example demo/3, and a message m_…")
    session = what.rpartition("/")[0] or _session_of(places, what)
    shown: Shown = JsonLines() if form == "json" else PlainText()
    with CtrlC() as ctrl_c:
        stream = EventStream(places, session, None, ctrl_c.wake)
        try:
            if not stream.is_known:
                raise no_such_session(stream.client, session)
            request = Retry(what, f"hermesctl-{os.urandom(12).hex()}")
            accepted = stream.client.ask(request, Accepted)
            sending = Sending(stream, session, accepted, shown, ctrl_c)
            if until == "accepted":
                return tell_accepted(form, session, accepted)
            return sending.follow_to_the_end()
        finally:
            stream.close()


def _session_of(places: Places, message: str) -> str:
    rows = read(places, Show("story", id=message))
    if not rows:
        raise CommandError(f"nothing is known of {message}", "hermesctl tail SESSION --after 0", Exit.REFUSED)
    return str(rows[0]["session"])
