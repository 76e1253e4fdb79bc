"""`python -m supervisor.journal ACT`: maintenance of a journal whose service does not run; JSON on stdout."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ipc.errors import WireError
from ipc.places import Places, add_options, chosen_places
from supervisor.config.toml_file import SettingsError
from supervisor.journal import lock, maintenance
from supervisor.journal.errors import JournalError, JournalLocked, JournalUnfit

_EXIT_REFUSED, _EXIT_LOCKED, _EXIT_SETTINGS, _EXIT_CTRL_C = 5, 75, 78, 130

Rows = Iterator[dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="supervisor.journal", description="Care for a journal at rest.")
    parser.add_argument("act", choices=tuple(_ACTS))
    add_options(parser)
    parser.add_argument("--session")
    parser.add_argument("--file")
    parser.add_argument("--url")
    parser.add_argument("--password-file", default="")
    options = parser.parse_args()
    try:
        places = chosen_places(options)
        if options.act != "move":
            _refuse_absent(places)
        # While this process holds the lock, no service can start on the file.
        held = lock.take(places.lock)
        for row in _ACTS[options.act](places, options):
            print(json.dumps(row, ensure_ascii=False))
        os.close(held)
    except JournalLocked as error:
        return _complain(_EXIT_LOCKED, error.fault, error.hint)
    except (WireError, SettingsError, JournalUnfit) as error:
        return _complain(_EXIT_SETTINGS, error.fault, error.hint)
    except JournalError as error:
        return _complain(_EXIT_REFUSED, error.fault, error.hint)
    except KeyboardInterrupt:
        return _EXIT_CTRL_C
    return 0


def _refuse_absent(places: Places) -> None:
    if not places.journal.exists():
        raise JournalError(
            f"there is no journal {places.journal}", "start the service once, or name its --home"
        )


def _check(places: Places, options: argparse.Namespace) -> Rows:
    found = maintenance.check(places.journal)
    yield {"file": str(places.journal), "ok": not found, "findings": found}


def _repair(places: Places, options: argparse.Namespace) -> Rows:
    # Imported here only: the running service never repairs.
    from supervisor.journal.repair import repair

    yield asdict(repair(places.journal))


def _stats(places: Places, options: argparse.Namespace) -> Rows:
    yield maintenance.stats(places.journal)


def _export(places: Places, options: argparse.Namespace) -> Rows:
    more = ""
    while True:
        page = maintenance.export_page(places.journal, options.session, more)
        yield from page.rows
        more = page.more
        if not more:
            return


def _backup(places: Places, options: argparse.Namespace) -> Rows:
    yield maintenance.backup(places.journal, Path(options.file).absolute(), lambda: False)


def _move(places: Places, options: argparse.Namespace) -> Rows:
    # Imported here only: both ends may need more than a journal at rest.
    from supervisor.config.settings import load
    from supervisor.journal.move import move
    from supervisor.journal.move_ends import ends, lines

    settings = load(places.settings_file)
    with ends(places, settings, options.url, options.password_file) as (source, target):
        for table, tally in move(source, target):
            yield {"table": table, "rows": tally.rows, "checksum": tally.checksum}
        kept = source.retire()
    yield {"url": options.url, "kept": kept, "settings": lines(options.url, options.password_file)}


_ACTS: dict[str, Callable[[Places, argparse.Namespace], Rows]] = {
    "check": _check,
    "repair": _repair,
    "stats": _stats,
    "export": _export,
    "backup": _backup,
    "move": _move,
}


def _complain(status: int, fault: str, hint: str) -> int:
    print(f"hermesctl: {fault}\n  hint: {hint}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
