"""`hermesctl interrupt`: ends the running turn and shows the proof that none of its processes is left."""

import time
from collections.abc import Iterator

import click
import msgspec

from hermesctl import completing
from hermesctl.command_result import acting, print_object
from hermesctl.errors import CommandError
from hermesctl.event_format import left, proof, unwritten
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name
from hermesctl.render import aside, one_line
from hermesctl.session_check import no_such_session
from ipc.messages import Done, Event, Interrupt
from ipc.places import Places

# A kill takes milliseconds; ten seconds without its proof is a fault worth reporting.
_PROOF_SECONDS = 10.0
_ENDINGS = {"turn.done": "was done before the interrupt", "turn.failed": "had failed before the interrupt"}
_ENDS = ("turn.interrupted", *_ENDINGS)
_EXAMPLES = """\b
Examples:
  hermesctl interrupt demo
  hermesctl interrupt demo --expect-turn demo/3
  hermesctl interrupt --all --drop
  hermesctl interrupt demo --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), required=False, shell_complete=completing.sessions)
@click.option("--all", "scope", flag_value="all", default="one", help="Every session.")
@click.option("--drop", "waiting", flag_value="drop", default="keep", help="Empty the queue too.")
@click.option("--expect-turn", **name("TURN"), help="Only if this turn is the running one.")
@acting
@click.pass_obj
def interrupt(
    places: Places, session: str | None, scope: str, waiting: str, expect_turn: str | None, form: str
) -> None:
    """Stop a running turn now, with everything it has started.

    What waits behind it stays, and is held until the next message or `hermesctl queue SESSION resume`.
    """
    if (session is None) == (scope == "one"):
        raise click.UsageError("SESSION or --all is needed, and not both")
    if scope == "all" and expect_turn:
        raise click.UsageError("--expect-turn belongs to one SESSION")
    stream = EventStream(places, session, None)
    try:
        if session is not None and not stream.is_known:
            raise no_such_session(stream.client, session)
        request = Interrupt(session, "hermesctl", expect_turn, drop=waiting == "drop")
        done = stream.client.ask(request, Done)
        ended = _carried_out(done, form) if done.unwritten else []
        for event in _endings(stream, set() if done.unwritten else set(done.turns)):
            ended.append(_as_object(event))
            if form != "json":
                print(_sentence(event), flush=True)
    finally:
        stream.close()
    note = done.note or ("" if done.turns else f"nothing runs in {session or 'any session'}")
    if form == "json":
        one: dict[str, object] = ended[0] if ended else {"turn": None, "state": None, "killed": None}
        alone, all = {"session": session, **one, "note": note}, {"turns": ended, "note": note}
        print_object(alone if session is not None else all)
    elif not done.turns:
        print(one_line(note))


def _carried_out(done: Done, form: str) -> list[dict[str, object]]:
    """The turn was stopped while the journal is not writable: the proofs come with the answer."""
    *lines, why = unwritten(done)
    if form != "json":
        print("\n".join(lines))
        aside(why)
    proofs = {each.turn: msgspec.to_builtins(each) for each in done.killed}
    return [
        {"turn": turn, "state": "interrupted", "killed": proofs.get(turn), "unwritten": done.unwritten}
        for turn in done.turns
    ]


def _as_object(event: Event) -> dict[str, object]:
    """The proof is null for a turn that ended by itself before the interrupt reached it."""
    state = event.type.removeprefix("turn.")
    return {"turn": event.fields["turn"], "state": state, "killed": event.fields.get("killed")}


def _sentence(event: Event) -> str:
    turn = one_line(event.fields["turn"])
    return f"{turn} {_ENDINGS.get(event.type) or f'interrupted: {proof(event.fields)}'}"


def _endings(stream: EventStream, missing: set[str]) -> Iterator[Event]:
    """Yields the event that ended each of these turns, as they arrive."""
    deadline = time.monotonic() + _PROOF_SECONDS
    while missing and time.monotonic() < deadline:
        item = stream.next()
        if isinstance(item, Event) and item.type == "attempt.stuck" and item.fields.get("turn") in missing:
            raise CommandError(
                f"{item.fields['turn']} {left(item.fields)}",
                "what waits is answered when it is gone; `hermesctl workers` shows it",
                Exit.REFUSED,
            )
        if isinstance(item, Event) and item.type in _ENDS and item.fields.get("turn") in missing:
            missing.discard(item.fields["turn"])
            yield item
    if missing:
        raise CommandError(
            f"no proof within {_PROOF_SECONDS:g} s that {', '.join(sorted(missing))} has ended",
            "hermesctl workers shows what still runs",
            Exit.BUG,
        )
