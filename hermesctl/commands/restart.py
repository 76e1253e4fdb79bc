"""`hermesctl restart`: a stop and a start, through systemd where the unit is installed."""

import click

from hermesctl.commands.start import launch
from hermesctl.commands.stop import Telling, end
from hermesctl.systemd import installed_unit
from ipc.budgets import START_SECONDS, STOP_PATIENCE_SECONDS
from ipc.endpoints import Places

_EXAMPLES = """\b
Examples:
  hermesctl restart
  hermesctl --home ./trial restart
"""


@click.command(epilog=_EXAMPLES)
@click.pass_context
def restart(ctx: click.Context) -> None:
    """Stop the supervisor and start it again.

    Running turns are taken up by the new one.
    """
    places: Places = ctx.obj
    unit = installed_unit(places)
    if unit is None:
        print(end(places, STOP_PATIENCE_SECONDS))
        print(launch(ctx, START_SECONDS))
        return
    unit.change("restart", Telling(places).say)
    print(f"restarted by systemd, pid {unit.pid()}")
