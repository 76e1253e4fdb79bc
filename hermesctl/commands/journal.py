"""`hermesctl journal`: check, back up, export, prune and count, beside the running service or without it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from hermesctl import completing, parameters
from hermesctl.client import Client
from hermesctl.command_result import acting, print_object
from hermesctl.errors import CommandError, NotRunning
from hermesctl.exit_codes import Exit
from hermesctl.neutral import json_text
from hermesctl.render import ago, one_line, plain, size
from hermesctl.session_check import require_session
from hermesctl.show_rows import as_json, print_json
from ipc import interpreter
from ipc.messages import Care
from ipc.places import Places, is_listening

# Checking every page of a few gigabytes, or copying them, takes minutes on a slow disk.
_PATIENCE_SECONDS = 1800.0
_EXAMPLES = """\b
Examples:
  hermesctl journal check
  hermesctl journal backup ~/journal-backup.db
  hermesctl journal export --session demo > demo.jsonl
  hermesctl journal prune --older 30d
  hermesctl journal stats
  hermesctl journal move postgresql://db.example/hermes
"""
_CHECK_EXAMPLES = """\b
Examples:
  hermesctl journal check
  hermesctl journal check --json
  hermesctl stop && hermesctl journal check --repair
"""
_BACKUP_EXAMPLES = """\b
Example:
  hermesctl journal backup ~/journal-backup.db
"""
_EXPORT_EXAMPLES = """\b
Examples:
  hermesctl journal export > journal.jsonl
  hermesctl journal export --session demo
"""
_PRUNE_EXAMPLES = """\b
Examples:
  hermesctl journal prune
  hermesctl journal prune --older 30d
  hermesctl journal prune --keep-bytes 1GiB
"""
_STATS_EXAMPLES = """\b
Examples:
  hermesctl journal stats
  hermesctl journal stats --json
"""
_MOVE_EXAMPLES = """\b
Examples:
  hermesctl stop
  hermesctl journal move postgresql://hermes@db.example/hermes --password-file ~/.config/hermes-database
  hermesctl journal move sqlite:
"""


@click.group(epilog=_EXAMPLES)
def journal() -> None:
    """Maintain the journal, which has all messages and turns."""


@journal.command(epilog=_CHECK_EXAMPLES, short_help="Look for damage.")
@click.option("--repair", is_flag=True, help="Save what can be saved into a new file; the old one is kept.")
@as_json
@click.pass_context
def check(ctx: click.Context, repair: bool, form: str) -> int:
    """Look at every page, and whether what is written agrees with itself."""
    if repair:
        return _repair(ctx, form)
    row = next(_ask(ctx, Care("check")))
    if form == "json":
        print_json(row)
    elif row["ok"]:
        print(f"the journal is sound ({one_line(row['file'])})")
    if row["ok"]:
        return Exit.DONE
    if form != "json":
        print("\n".join(plain(finding) for finding in row["findings"]))
    raise CommandError(
        f"the journal {row['file']} is damaged",
        "hermesctl journal backup FILE, hermesctl stop, then hermesctl journal check --repair",
        Exit.REFUSED,
    )


def _repair(ctx: click.Context, form: str) -> int:
    if is_listening(_places(ctx).control):
        raise CommandError("the supervisor has the journal open", "hermesctl stop, then repair", Exit.REFUSED)
    row = next(_without_service(ctx, "repair"))
    if form == "json":
        print_object(row)
        return Exit.DONE
    for table, number in row["saved"].items():
        lost = row["unreadable"].get(table)
        print(f"{number:>9} {one_line(table)}" + (f"  ({lost} unreadable stretches)" if lost else ""))
    print(f"saved into {one_line(row['file'])}; the old file is {one_line(row['kept'])}")
    return Exit.DONE


@journal.command(epilog=_BACKUP_EXAMPLES, short_help="Write a whole and checked copy to FILE.")
@click.argument("file", **parameters.file())
@as_json
@click.pass_context
def backup(ctx: click.Context, file: str, form: str) -> None:
    """Write a whole and checked copy to FILE, without holding up the service."""
    if not parameters.is_utf8(file):
        raise click.UsageError("FILE is not UTF-8 text")
    path = str(Path(file).absolute())
    row = next(_ask(ctx, Care("backup", file=path), "--file", path))
    if form == "json":
        print_object(row)
    else:
        print(f"{one_line(row['file'])}: {size(row['bytes'])}, whole and checked")


@journal.command(epilog=_EXPORT_EXAMPLES, short_help="Print everything as JSON, one row a line.")
@click.option(
    "--session",
    **parameters.name("SESSION"),
    shell_complete=completing.sessions,
    help="Only what belongs to this session.",
)
@click.pass_context
def export(ctx: click.Context, session: str | None) -> None:
    """Print everything as JSON, one row a line; the texts of people are in it."""
    line = ("--session", session) if session is not None else ()
    rows = 0
    for row in _ask(ctx, Care("export", session=session), *line):
        rows += 1
        print(json_text(row))
    if session is None or rows:
        return
    if is_listening(_places(ctx).control):
        require_session(_places(ctx), session)
    else:
        fault = f"there is no session {parameters.quoted(session)} in the journal"
        raise CommandError(fault, "hermesctl journal export without --session shows all", Exit.REFUSED)


@journal.command(epilog=_PRUNE_EXAMPLES, short_help="Forget turns that are over.")
@click.option("--older", **parameters.duration(), help="Forget what ended longer ago, such as 30d.")
@click.option("--keep-bytes", **parameters.size(), help="Forget the oldest until so much is left: 1GiB.")
@as_json
@click.pass_context
def prune(ctx: click.Context, older: str | None, keep_bytes: str | None, form: str) -> None:
    """Forget turns that are over; without options, by the settings in [journal]."""
    row = next(_online(_places(ctx), Care("prune", older=older, keep=keep_bytes)))
    if form == "json":
        print_object(row)
    else:
        removed = ", ".join(f"{number} {one_line(table)}" for table, number in row.items() if number)
        print(f"forgotten: {removed}" if removed else "there is nothing to forget")


@journal.command(epilog=_STATS_EXAMPLES)
@as_json
@click.pass_context
def stats(ctx: click.Context, form: str) -> None:
    """Show how big the journal is and what is in it."""
    row = next(_ask(ctx, Care("stats")))
    if form == "json":
        print_json(row)
        return
    print(f"{one_line(row['file'])} · schema {plain(row['schema'])} · epoch {plain(row['epoch'])}")
    free = f" ({size(row['free_bytes'])} of it free for reuse)" if row["free_bytes"] else ""
    print(f"  size      {size(row['bytes'])}{free} + {size(row['log_bytes'])} of log")
    print(f"  oldest    {ago(row['oldest_at'])} ago · newest {ago(row['newest_at'])} ago")
    print(f"  open      {row['turns_open']} turns")
    for table, number in row["rows"].items():
        print(f"  {number:>9} {one_line(table)}")


@journal.command(epilog=_MOVE_EXAMPLES, short_help="Move it to a PostgreSQL server, or back to a file.")
@click.argument("url", **parameters.name("URL"), shell_complete=completing.journals)
@click.option("--password-file", **parameters.file(), help="Has the password for URL.")
@acting
@click.pass_context
def move(ctx: click.Context, url: str, password_file: str | None, form: str) -> None:
    """Move the journal to the database URL, or with `sqlite:` to its file; the service is stopped.

    Every table is compared, by the number of its rows and a checksum of them, before the move counts. The
    former journal is kept, and no service starts with it. hermes.toml is not changed: what it has to say is
    printed.
    """
    line = ["--url", url]
    if password_file is not None:
        line += ["--password-file", str(Path(password_file).expanduser().absolute())]
    rows: dict[str, int] = {}
    checksums: dict[str, str] = {}
    for row in _without_service(ctx, "move", *line):
        if "table" not in row:
            _tell_moved(row, rows, checksums, form)
            continue
        rows[row["table"]], checksums[row["table"]] = row["rows"], row["checksum"]
        if form != "json":
            print(f"{row['rows']:>9} {one_line(row['table'])}", flush=True)


def _tell_moved(moved: dict[str, Any], rows: dict[str, int], checksums: dict[str, str], form: str) -> None:
    if form == "json":
        print_object(moved | {"rows": rows, "checksums": checksums})
        return
    print(f"moved and compared; the former journal is kept: {one_line(moved['kept'])}")
    if moved["settings"]:
        print("write into hermes.toml, then start the service:", *moved["settings"], sep="\n")
    else:
        print("remove url and password_file of [journal] from hermes.toml, then start the service")


def _places(ctx: click.Context) -> Places:
    assert isinstance(ctx.obj, Places)
    return ctx.obj


def _ask(ctx: click.Context, request: Care, *line: str) -> Iterator[dict[str, Any]]:
    """Returns the rows: from the running service, which has the journal open, or else from a process of our
    own.
    """
    try:
        yield from _online(_places(ctx), request)
    except NotRunning:
        if is_listening(_places(ctx).control):
            raise
        yield from _without_service(ctx, request.act, *line)


def _online(places: Places, request: Care) -> Iterator[dict[str, Any]]:
    client = Client(places)
    try:
        yield from client.rows(request, timeout_seconds=_PATIENCE_SECONDS)
    finally:
        client.close()


def _without_service(ctx: click.Context, act: str, *line: str) -> Iterator[dict[str, Any]]:
    with subprocess.Popen(
        interpreter.command("supervisor.journal", act, *_places(ctx).arguments, *line),
        stdout=subprocess.PIPE,
        cwd=interpreter.WORKING_DIRECTORY,
        env=interpreter.environment("XDG_*"),
    ) as process:
        assert process.stdout is not None
        for row in process.stdout:
            yield msgspec.json.decode(row)
    if process.returncode != 0:
        # It has printed the reason on standard error.
        ctx.exit(process.returncode)
