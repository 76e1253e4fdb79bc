"""`hermesctl pair`: a one-time code for a browser or a phone."""

import io
import shutil
import sys
from contextlib import suppress
from urllib.parse import urlsplit

import click

from gateway.tokens import CODE_SECONDS
from hermesctl.command_result import acting, tell
from hermesctl.commands.status import console_of, read_status
from hermesctl.errors import NotRunning
from hermesctl.parameters import name
from hermesctl.render import aside, one_line
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

    The code is valid for five minutes. The token gets NAME; `hermesctl tokens revoke NAME` ends it. In a
    terminal, and while the gateway runs, a QR code beside it opens the console with the code.
    """
    with token_store(places) as store:
        code = store.make_code(called, owner or "", rights)
    address = _console(places)
    fields = {"console": address} if address else {}
    tell(form, code, code=code, name=called, valid_seconds=CODE_SECONDS, **fields)
    if form == "json" or not sys.stdout.isatty():
        return
    aside(f"valid for {CODE_SECONDS / 60:.0f} minutes, once")
    if address:
        # What follows the sign # is not sent to any server; the page reads it.
        link = f"{address}#code={code}"
        print(_qr_code(link), flush=True)
        aside(f"open {link}, or {address} and enter the code")
        if urlsplit(address).hostname in ("127.0.0.1", "::1", "localhost"):
            aside("this address is of this machine alone; docs/gateway.md says how a phone reaches it")


def _console(places: Places) -> str:
    """The address of the console; empty where no service runs, which a code does not need."""
    with suppress(NotRunning):
        return one_line(console_of(read_status(places)))
    return ""


def _qr_code(link: str) -> str:
    """The link as a QR code in half blocks; empty where there is no room or no package for it."""
    with suppress(ModuleNotFoundError):
        import segno

        drawn = io.StringIO()
        segno.make(link, micro=False).terminal(drawn, border=2, compact=True)
        picture = drawn.getvalue()
        if picture.index("\n") <= shutil.get_terminal_size().columns:
            return picture.rstrip("\n")
    return ""
