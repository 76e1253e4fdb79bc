"""`hermesctl logs`: the supervisor's log: from journald if its unit is installed, else from a file."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

import click

from hermesctl.errors import CommandError
from hermesctl.event_format import clock
from hermesctl.exit_codes import Exit
from hermesctl.neutral import escaped_json, neutral
from hermesctl.parameters import whole
from hermesctl.systemd import installed_unit
from ipc.places import Places

_LOOK_SECONDS = 0.2
# A line of the log is a few hundred bytes; for older lines use an editor.
_LINE_BYTES = 1024
# The start of a log line, by [log] format: seconds since 1970.
_LOGFMT_TIME = re.compile(r"(?P<at>\d{9,11}\.\d{3}) ")
_JSON_KEY = '"at": '
_JSON_TIME = re.compile(r'\{"at": (?P<at>\d{9,11}\.\d+), ')
_EXAMPLES = """\b
Examples:
  hermesctl logs
  hermesctl logs -f
  hermesctl logs --lines 500
"""


@click.command(epilog=_EXAMPLES)
@click.option("-f", "--follow", "follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "--lines",
    **whole(0, 100_000),
    default=50,
    show_default=True,
    help="How many of the last lines to begin with.",
)
@click.option("--json", "form", flag_value="json", default="text", help="One JSON object a line.")
@click.pass_obj
def logs(places: Places, follow: bool, lines: int, form: str) -> int:
    """Show the log of the supervisor."""
    unit = installed_unit(places)
    if unit is not None:
        words = [f"--lines={lines}", *(["--follow"] if follow else [])]
        words += ["--output=json"] if form == "json" else ["--output=short-iso"]
        return _copy(unit.journal(*words), form)
    log = places.logs / "supervisor.log"
    if not log.exists():
        raise CommandError(f"there is no log at {log}", "hermesctl start writes one", Exit.NOT_RUNNING)
    with log.open("rb") as file:
        for text in _last(file, lines):
            _show(text, form)
        if follow:
            for text in _fresh(log, file):
                _show(text, form)
    return Exit.DONE


def _copy(line: list[str], form: str) -> int:
    """Copies the output of journalctl without terminal control sequences; returns its exit code."""
    show = escaped_json if form == "json" else neutral
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                print(show(text), end="", flush=True)
        except KeyboardInterrupt:
            process.terminate()
            raise
    return process.returncode


def _show(text: str, form: str) -> None:
    if form == "json":
        print(json.dumps({"line": text}), flush=True)
    elif sys.stdout.isatty():
        print(neutral(_with_clock(text)), flush=True)
    else:
        print(neutral(text), flush=True)


def _with_clock(text: str) -> str:
    """Converts the time of a line for a person; other lines stay unchanged."""
    found = _LOGFMT_TIME.match(text) or _JSON_TIME.match(text)
    if found is None:
        return text
    at = float(found["at"])
    day = time.strftime("%Y-%m-%d", time.localtime(at))
    return f"{day} {clock(at)} {text[: found.start('at')].removesuffix(_JSON_KEY)}{text[found.end() :]}"


def _last(file: BinaryIO, lines: int) -> list[str]:
    """Whole lines up to the current end of the file: later reads begin there."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - lines * _LINE_BYTES))
    whole, newline, rest = file.read(end - file.tell()).rpartition(b"\n")
    file.seek(end - len(rest))
    return whole.decode(errors="replace").splitlines()[-lines:] if lines and newline else []


def _fresh(log: Path, file: BinaryIO) -> Generator[str, None, None]:
    """Yields every line written from there on, also when the log is rotated; closes the file at the end."""
    rest = b""
    try:
        while True:
            piece = file.read()
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            if piece:
                continue
            if _is_another(log, file):
                rest += file.read()  # written between the last read and the rotation
                file.close()
                file = log.open("rb")
            time.sleep(_LOOK_SECONDS)
    finally:
        file.close()


def _is_another(log: Path, file: BinaryIO) -> bool:
    """True when the log continues elsewhere: in a new file, or at the beginning of this one."""
    try:
        now = log.stat()
    except FileNotFoundError:
        return False
    return not os.path.samestat(now, os.fstat(file.fileno())) or now.st_size < file.tell()
