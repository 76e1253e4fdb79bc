"""`hermesctl run`: becomes the supervisor; the process is replaced, so signals and exit codes are its own."""

import os
import sys

import click

_EXAMPLES = """\b
Examples:
  hermesctl run
  hermesctl --home ./trial run
"""


@click.command(epilog=_EXAMPLES)
@click.option("--system", "place", flag_value="--system", help="As the unit of the whole machine runs it.")
@click.pass_context
def run(ctx: click.Context, place: str | None) -> None:
    """Run the supervisor in the foreground."""
    sys.stdout.flush()
    os.execv(sys.executable, [*supervisor_line(ctx), *([place] if place else [])])


def supervisor_line(ctx: click.Context) -> list[str]:
    """The command line of the supervisor for the same places as this command."""
    home = ctx.find_root().params["home"]
    return [sys.executable, "-m", "supervisor", *(["--home", home] if home else [])]
