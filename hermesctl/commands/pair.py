"""`hermesctl pair`: a one-time code for a browser or a phone."""

import sys

import click

from gateway.tokens import CODE_SECONDS
from hermesctl.command_result import acting, tell
from hermesctl.parameters import name
from hermesctl.render import aside
from hermesctl.token_store import token_store, whose_and_what
from ipc.places import Places

_EXAMPLES = """\b
Examples:
  hermesctl pair
  hermesctl pair phone --owner anna
  hermesctl pair --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("called", **name("NAME"), required=False, default="paired")
@whose_and_what
@acting
@click.pass_obj
def pair(places: Places, called: str, owner: str | None, rights: tuple[str, ...], form: str) -> None:
    """Print a code that a person exchanges once for a token of the gateway.

    The code is valid for five minutes. The token gets NAME; `hermesctl tokens revoke NAME` ends it.
    """
    with token_store(places) as store:
        code = store.make_code(called, owner or "", rights)
    tell(form, code, code=code, name=called, valid_seconds=CODE_SECONDS)
    if form != "json" and sys.stdout.isatty():
        aside(f"valid for {CODE_SECONDS / 60:.0f} minutes, once")
