"""`hermesctl interrupt`: ends the running turn and shows the proof that nothing of it lives."""

import time

import click

from hermesctl import completing
from hermesctl.errors import CommandError
from hermesctl.events import proof
from hermesctl.exits import Exit
from hermesctl.feed import Feed
from hermesctl.render import one_line
from ipc.endpoints import Places
from ipc.messages import Done, Event, Interrupt

# A kill takes milliseconds; ten seconds without its proof is a fault worth saying.
_PROOF_SECONDS = 10.0
_ENDINGS = {"turn.done": "was done before the interrupt", "turn.failed": "had failed before the interrupt"}
_EXAMPLES = """\b
Examples:
  hermesctl interrupt demo
  hermesctl interrupt demo --expect-turn demo/3
  hermesctl interrupt --all --drop
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", required=False, shell_complete=completing.sessions)
@click.option("--all", "scope", flag_value="all", default="one", help="Every session.")
@click.option("--drop", "waiting", flag_value="drop", default="keep", help="Empty the queue too.")
@click.option("--expect-turn", metavar="TURN", help="Only if this turn is the running one.")
@click.pass_obj
def interrupt(places: Places, session: str | None, scope: str, waiting: str, expect_turn: str | None) -> None:
    """Stop a running turn now, with everything it has started.

    What waits behind it stays, and is held until the next message or `hermesctl queue SESSION resume`.
    """
    if (session is None) == (scope == "one"):
        raise click.UsageError("name a SESSION or give --all, and not both")
    if scope == "all" and expect_turn:
        raise click.UsageError("--expect-turn belongs to one SESSION")
    feed = Feed(places, session, None)
    try:
        request = Interrupt(session, "hermesctl", expect_turn, drop=waiting == "drop")
        done = feed.client.ask(request, Done)
        if done.turns:
            _wait_for_proofs(feed, set(done.turns))
        else:
            print(one_line(done.note) or f"nothing runs in {session or 'any session'}")
    finally:
        feed.close()


def _wait_for_proofs(feed: Feed, missing: set[str]) -> None:
    deadline = time.monotonic() + _PROOF_SECONDS
    while missing and time.monotonic() < deadline:
        item = feed.next()
        if not isinstance(item, Event) or item.fields.get("turn") not in missing:
            continue
        turn = one_line(item.fields["turn"])
        if item.type == "turn.interrupted":
            print(f"{turn} interrupted: {proof(item.fields)}", flush=True)
        elif item.type in _ENDINGS:
            print(f"{turn} {_ENDINGS[item.type]}", flush=True)
        else:
            continue
        missing.discard(item.fields["turn"])
    if missing:
        raise CommandError(
            f"no proof within {_PROOF_SECONDS:g} s that {', '.join(sorted(missing))} has ended",
            "hermesctl workers shows what still runs",
            Exit.BUG,
        )
