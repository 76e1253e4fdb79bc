"""`hermesctl agents`: lists the agents, tries one, and prepares the interpreter of one."""

import os
import sys

import click

from hermesctl import completing
from hermesctl.agent_rows import in_settings, named, read_agents
from hermesctl.answer_stream import JsonLines, PlainText, Shown
from hermesctl.command_result import acting, steps, tell
from hermesctl.ctrlc import CtrlC
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.parameters import name
from hermesctl.render import Column, one_line, paint
from hermesctl.sending import Sending
from hermesctl.show_rows import as_json, print_rows, read
from hermesctl.text_input import typed
from ipc.messages import Accepted, Show, Submit
from ipc.places import Places
from ipc.try_sessions import session_of

_COLUMNS = (
    Column("agent", "agent"),
    Column("kind", "kind"),
    Column("state", "state", state=True),
    Column("models", "models", rank=2),
    Column("entry", "entry", rank=2),
    Column("python", "interpreter", rank=3),
    Column("fault", "fault", wide=True, rank=1),
)
_TEXT = "Say hello in one short sentence."
_EXAMPLES = """\b
Examples:
  hermesctl agents list
  hermesctl agents add mine
  hermesctl agents try mine
"""
_LIST_EXAMPLES = """\b
Examples:
  hermesctl agents list
  hermesctl agents list --json
"""
_TRY_EXAMPLES = """\b
Examples:
  hermesctl agents try mine
  hermesctl agents try mine "What is 6 times 7?"
  hermesctl agents try mine --json

\b
Exit codes: 0 answered, 3 interrupted, 4 the turn failed, 5 refused.
"""
_ADD_EXAMPLES = """\b
Examples:
  hermesctl agents add mine
  hermesctl agents add mine --json
"""


@click.group(epilog=_EXAMPLES)
def agents() -> None:
    """List the agents, try one, and prepare the interpreter of one."""


@agents.command("list", epilog=_LIST_EXAMPLES)
@as_json
@click.pass_obj
def list_agents(places: Places, form: str) -> None:
    """Show the agents of hermes.toml: kind, interpreter, and whether they can start.

    warm: its workers start at once. cold: the next turn starts its runtime. failed: it cannot start; the next
    turn tries again. When the service does not run, the agents are read from hermes.toml. `models` are those
    that it asks, in their order; a key that cannot be read, or an outage of all of them, is its fault.
    """
    rows = read_agents(places)
    print_rows(form, rows, _COLUMNS, "there are no agents")
    if form == "json":
        return
    for row in rows:
        if row.get("hint"):
            print(paint(f"{one_line(row['agent'])}: {one_line(row['hint'])}", "yellow", sys.stdout))


@agents.command("try", epilog=_TRY_EXAMPLES)
@click.argument("agent", **name("NAME"), shell_complete=completing.agents)
@click.argument("text", required=False, default=_TEXT)
@click.option("--json", "form", flag_value="json", default="words", help="Print one event a line.")
@click.pass_obj
def try_agent(places: Places, agent: str, text: str, form: str) -> int:
    """Let an agent answer one message, in a session of its own.

    The turn is like any other: recorded, in the agent's cell, with its tools and its model. Its session is
    new, so that the agent has no history; `hermesctl why` shows what happened.
    """
    words = typed(text)
    if not words.strip():
        raise click.UsageError("the message is empty")
    named(list(read(places, Show("agents"))), agent)
    session = session_of(agent, os.urandom(4).hex())
    shown: Shown = JsonLines() if form == "json" else PlainText()
    with CtrlC() as ctrl_c:
        stream = EventStream(places, session, None, ctrl_c.wake)
        try:
            submit = Submit(session, words, f"hermesctl-{os.urandom(12).hex()}", "queue")
            accepted = stream.client.ask(submit, Accepted)
            ending = Sending(stream, session, accepted, shown, ctrl_c).follow_to_the_end()
        finally:
            stream.close()
    if ending is Exit.DONE:
        shown.remark(f"{agent} starts and answers; its session was {session}")
    return ending


@agents.command("add", epilog=_ADD_EXAMPLES)
@click.argument("agent", **name("NAME"), shell_complete=completing.agents)
@acting
@click.pass_obj
def add_agent(places: Places, agent: str, form: str) -> None:
    """Lay beside the interpreter of an agent what its workers need.

    The table [agents.NAME] names that interpreter with python. Nothing is installed in it: msgspec and pyzmq
    are put into a folder of the state directory, one for each version of Python. pip fetches them, by its own
    settings.
    """
    from hermesctl.agent_packages import lay_beside

    row = named(in_settings(places), agent)
    python, kind = str(row["python"]), str(row["kind"])
    if not row["foreign"]:
        sentence = f"{agent} runs in the interpreter of the service, which has what it needs"
        tell(form, sentence, agent=agent, python=python, folder=None)
        return
    folder = lay_beside(places, agent, python, kind, steps(form))
    sentence = f"{agent} can start in {python}; hermesctl agents try {agent} lets it answer"
    tell(form, sentence, agent=agent, python=python, folder=folder)
