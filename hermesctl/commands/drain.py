"""`hermesctl drain`: no new turn begins, those that run finish."""

import click

from hermesctl.client import Client
from hermesctl.command_result import acting, tell
from hermesctl.draining import drain_and_wait, running_turns
from hermesctl.host_states import ask_host, host_option
from ipc.messages import Done, Drain
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl drain
  hermesctl drain --wait
  hermesctl drain --json
  hermesctl drain --host beta --wait
  hermesctl undrain
"""


@click.command(epilog=_EXAMPLES)
@click.option("--wait", "until", flag_value="end", default="asked", help="Return when no turn runs any more.")
@host_option
@acting
@click.pass_obj
def drain(places: Places, until: str, host: str | None, form: str) -> None:
    """Begin no new turns; those that run finish.

    New messages are accepted and wait, until `hermesctl undrain` or the next start. With --host, a host that
    shares the journal is asked to; the others take what is new.
    """
    if host is not None:
        row = ask_host(places, host, Drain(host), "draining", until == "end")
        sentence = f"host {host} begins no new turn; {row['running']} still running"
        tell(form, sentence, host=host, draining=True, running=row["running"])
        return
    if until == "end":
        drain_and_wait(places, None)
        tell(form, "drained: no turn runs", draining=True, running=[])
        return
    client = Client(places)
    try:
        done = client.ask(Drain(), Done)
        running = running_turns(client) if form == "json" else []
    finally:
        client.close()
    tell(form, done.note, draining=True, running=running, note=done.note)
