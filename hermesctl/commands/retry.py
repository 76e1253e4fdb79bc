"""`hermesctl retry`: says again what a failed or interrupted turn was to answer, and stays with it."""

import os

import click

from hermesctl.ctrlc import CtrlC
from hermesctl.feed import Feed
from hermesctl.sending import JsonLines, Sending, Shown, Voice
from ipc.endpoints import Places
from ipc.messages import Retry

_EXAMPLES = """\b
Examples:
  hermesctl turns --state poison
  hermesctl retry demo/3
  hermesctl retry demo/3 --no-wait

\b
Exit codes: 0 answered, 3 interrupted, 4 the turn failed, 5 refused.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("turn")
@click.option(
    "--no-wait", "until", flag_value="accepted", default="end", help="Print the message's id and leave."
)
@click.option("--json", "form", flag_value="json", default="words", help="Print one event a line.")
@click.pass_obj
def retry(places: Places, turn: str, until: str, form: str) -> int:
    """Have a failed or interrupted turn answered after all.

    What it was to answer is said again, behind whatever waits in its session; the old turn stays as it ended.
    """
    session = turn.rpartition("/")[0]
    if not session:
        raise click.UsageError("a turn is named SESSION/N, for example demo/3")
    shown: Shown = JsonLines() if form == "json" else Voice()
    with CtrlC() as ctrl_c:
        feed = Feed(places, session, None, ctrl_c.wake)
        try:
            request = Retry(turn, f"hermesctl-{os.urandom(12).hex()}")
            sending = Sending(feed, session, request, shown, ctrl_c)
            accepted = sending.submit()
            if until == "accepted":
                print(accepted.message)
                return 0
            return sending.follow_to_the_end()
        finally:
            feed.close()
