"""Opens the token store for a command; its faults end the command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from gateway.tokens import RIGHTS, TokenError, TokenStore
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.parameters import listed, name, quoted
from ipc.places import Places, make_private

_DEFAULT_RIGHTS = "talk,watch"


@contextmanager
def token_store(places: Places) -> Iterator[TokenStore]:
    """The folder may not be there yet: tokens can be added before the first start."""
    make_private(places.state)
    store = None
    try:
        store = TokenStore(places.tokens)
        yield store
    except TokenError as error:
        raise CommandError(error.fault, error.hint, Exit.REFUSED) from error
    finally:
        if store is not None:
            store.close()


def whose_and_what(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that say whose a token is and what it may do."""
    owner = click.option(
        "--owner",
        **name("OWNER"),
        default=None,
        help="Whose sessions it sees: OWNER's alone, which hermesctl calls OWNER:SESSION. Default: all.",
    )
    rights = click.option(
        "--rights",
        type=_rights,
        metavar="RIGHT,…",
        default=_DEFAULT_RIGHTS,
        show_default=True,
        help=f"What it may do: {listed(RIGHTS)}.",
    )
    return owner(rights(command))


def _rights(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    rights = tuple(right.strip() for right in text.split(","))
    for right in rights:
        if right not in RIGHTS:
            raise click.BadParameter(f"lists {listed(RIGHTS)}, with commas between, not {quoted(right)}")
    return rights
