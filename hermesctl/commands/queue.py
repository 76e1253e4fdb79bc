"""`hermesctl queue`: shows or changes the messages that wait behind the running turn of a session."""

from typing import Literal, get_args

import click

from hermesctl import completing
from hermesctl.client import Client
from hermesctl.command_result import tell
from hermesctl.parameters import name, one_of
from hermesctl.render import Column, ago
from hermesctl.session_check import require_session
from hermesctl.show_rows import as_json, print_rows
from ipc.messages import Done, Queue
from ipc.places import Places

Act = Literal["list", "drop", "clear", "resume"]
_SAID = {"drop": "dropped", "clear": "cleared", "resume": "resumed"}
_COLUMNS = (
    Column("message", "message"),
    Column("held", "held", rank=2),
    Column("kind", "kind", rank=2),
    Column("state", "state", rank=2),
    Column("busy", "busy", rank=3),
    Column("at", "waiting", ago, right=True, rank=1),
    Column("text", "text", wide=True, rank=1),
)
_EXAMPLES = """\b
Examples:
  hermesctl queue demo
  hermesctl queue demo drop m_17
  hermesctl queue demo clear
  hermesctl queue demo resume
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), shell_complete=completing.sessions)
@click.argument("act", **one_of(get_args(Act), "ACTION"), default="list")
@click.argument("message", **name("MESSAGE"), required=False)
@as_json
@click.pass_obj
def queue(places: Places, session: str, act: Act, message: str | None, form: str) -> None:
    """Show or change the messages that wait behind a running turn."""
    if act == "drop" and message is None:
        raise click.UsageError("drop needs the id of a MESSAGE")
    if act != "drop" and message is not None:
        raise click.UsageError(f"{act} takes no MESSAGE")
    client = Client(places)
    try:
        waiting = list(client.rows(Queue(session)))
        if not waiting:
            require_session(places, session)
        if act == "list":
            print_rows(form, waiting, _COLUMNS, f"nothing waits in {session}")
            return
        done = client.ask(Queue(session, act, message), Done)
    finally:
        client.close()
    sentence = done.note or f"{session}: {_SAID[act]}"
    tell(form, sentence, session=session, act=act, message=message, turns=done.turns, note=done.note)
