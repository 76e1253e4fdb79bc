"""`hermesctl tokens`: adds, lists and revokes the tokens of the gateway; needs no running service."""

import click

from hermesctl.command_result import acting, tell
from hermesctl.parameters import name
from hermesctl.render import Column, ago
from hermesctl.show_rows import as_json, print_rows
from hermesctl.token_store import token_store, whose_and_what
from ipc.places import Places

_COLUMNS = (
    Column("id", "id"),
    Column("name", "name", wide=True),
    Column("kind", "kind", rank=2),
    Column("owner", "owner", rank=1),
    Column("rights", "rights"),
    Column("made_at", "made", ago, right=True, rank=2),
    Column("used_at", "used", ago, right=True, rank=1),
    Column("state", "state"),
)
_EXAMPLES = """\b
Examples:
  hermesctl tokens add phone
  hermesctl tokens list
  hermesctl tokens revoke phone
"""
_ADD_EXAMPLES = """\b
Examples:
  hermesctl tokens add phone
  hermesctl tokens add anna-laptop --owner anna
  hermesctl tokens add dashboard --rights watch,operate --json

\b
Rights: watch reads sessions and events. talk sends messages, interrupts and answers questions.
operate sees workers and services, drains and scales.
"""
_LIST_EXAMPLES = """\b
Examples:
  hermesctl tokens list
  hermesctl tokens list --json
"""
_REVOKE_EXAMPLES = """\b
Examples:
  hermesctl tokens revoke phone
  hermesctl tokens revoke t_1f0c9a22
"""


@click.group(epilog=_EXAMPLES)
def tokens() -> None:
    """Add, list and revoke the tokens of the gateway."""


@tokens.command("add", epilog=_ADD_EXAMPLES)
@click.argument("called", **name("NAME"))
@whose_and_what
@acting
@click.pass_obj
def add_token(places: Places, called: str, owner: str | None, rights: tuple[str, ...], form: str) -> None:
    """Make a token and print it. It is shown this once: only its hash is stored."""
    with token_store(places) as store:
        token, secret = store.add(called, owner or "", rights)
    tell(form, secret, id=token.id, name=token.name, owner=token.owner, rights=rights, token=secret)


@tokens.command("list", epilog=_LIST_EXAMPLES)
@as_json
@click.pass_obj
def list_tokens(places: Places, form: str) -> None:
    """List the tokens: whose they are, what they may do, and when they were used."""
    with token_store(places) as store:
        rows = store.rows()
    print_rows(form, rows, _COLUMNS, "no tokens yet; the gateway makes the first one when it starts")


@tokens.command("revoke", epilog=_REVOKE_EXAMPLES)
@click.argument("which", **name("ID|NAME"))
@acting
@click.pass_obj
def revoke_token(places: Places, which: str, form: str) -> None:
    """End a token. Requests with it are refused from now on; its open streams end within a second."""
    with token_store(places) as store:
        token = store.revoke(which)
    tell(form, f"{token.name} ({token.id}) is revoked", id=token.id, name=token.name)
