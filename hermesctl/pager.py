"""Shows long output page by page: only on a terminal, only when it is longer than the screen, like git."""

import os
import sys
from collections.abc import Callable
from typing import Any

import click

_SWITCH = "hermesctl.pager"
# Quit if it fits, pass colours through, leave the last page on the screen.
_LESS = "FRX"


def _off(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        ctx.meta[_SWITCH] = "off"


def no_pager(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the option --no-pager."""
    option = click.option(
        "--no-pager", is_flag=True, expose_value=False, callback=_off, help="Print long tables at once."
    )
    return option(command)


def show(text: str) -> None:
    """Prints a text, through $PAGER (else less) where it would scroll away."""
    line = _pager() if sys.stdout.isatty() and not _fits(text) else []
    if not line or not _paged(line, text):
        print(text)


def _pager() -> list[str]:
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(_SWITCH) == "off":
        return []
    import shlex

    line = shlex.split(os.environ.get("PAGER", "less"))
    return [] if line == ["cat"] else line


def _fits(text: str) -> bool:
    from hermesctl.render import bare, width

    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    # The last line is the prompt's.
    return sum(max(1, -(-width(bare(line)) // max(1, columns))) for line in text.splitlines()) < rows


def _paged(line: list[str], text: str) -> bool:
    """False when there is no such program."""
    import subprocess

    from hermesctl.neutral import guarded

    try:
        process = subprocess.Popen(line, stdin=subprocess.PIPE, env={"LESS": _LESS, **os.environ})
    except OSError:
        return False
    try:
        process.communicate(f"{guarded(text)}\n".encode(errors="replace"))
    except KeyboardInterrupt:
        # Ctrl-C is the pager's while it has the screen.
        process.wait()
    return True
