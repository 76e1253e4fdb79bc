"""Shell completion: commands, names and ids; fast, and silent when the supervisor does not answer."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ipc.messages import TurnState

# A person waits after Tab: after this time an empty answer is better than a late one.
_ANSWER_SECONDS = 1.0
_ROWS_MAX = 200
_Table = Literal["sessions", "turns", "questions", "agents", "hosts"]


def sessions(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    return _offer((_item(row, "session", "state") for row in _rows(ctx, "sessions")), incomplete)


def turns(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    return _offer((_item(row, "turn", "state") for row in _rows(ctx, "turns")), incomplete)


def unhappy_turns(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    states: tuple[TurnState, ...] = ("failed", "interrupted")
    found = (row for state in states for row in _rows(ctx, "turns", state))
    return _offer((_item(row, "turn", "state") for row in found), incomplete)


def questions(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    return _offer((_item(row, "question", "kind") for row in _rows(ctx, "questions")), incomplete)


def agents(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    return _offer((_item(row, "agent", "kind") for row in _rows(ctx, "agents")), incomplete)


def weights(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    from click.shell_completion import CompletionItem

    from hermesctl.weight_catalogue import CATALOGUE

    return _offer((CompletionItem(each.name, help=each.kind) for each in CATALOGUE), incomplete)


def hosts(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    return _offer((_item(row, "name", "state") for row in _rows(ctx, "hosts")), incomplete)


def journals(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    from click.shell_completion import CompletionItem

    known = {"postgresql://": "a database", "sqlite:": "the file in the state folder"}
    return _offer((CompletionItem(url, help=what) for url, what in known.items()), incomplete)


def _item(row: dict[str, Any], name: str, help: str) -> "CompletionItem[str]":
    from click.shell_completion import CompletionItem

    return CompletionItem(str(row.get(name)), help=str(row.get(help)))


def _offer(items: "Iterable[CompletionItem[str]]", incomplete: str) -> "list[CompletionItem[str]]":
    """Leaves out a name with a line break, which would be read as several."""
    return [item for item in items if item.value.startswith(incomplete) and item.value.isprintable()]


def _rows(ctx: click.Context, what: _Table, state: "TurnState | None" = None) -> Iterator[dict[str, Any]]:
    from hermesctl.client import Client
    from hermesctl.errors import CommandError
    from ipc.errors import WireError
    from ipc.messages import Show
    from ipc.places import find_places

    try:
        client = Client(find_places(ctx.find_root().params.get("home")))
    except CommandError:
        return
    try:
        yield from client.rows(Show(what, state=state, limit=_ROWS_MAX), _ROWS_MAX, _ANSWER_SECONDS)
    except (CommandError, WireError):
        return
    finally:
        client.close()
