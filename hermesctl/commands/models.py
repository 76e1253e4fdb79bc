"""`hermesctl models`: lists and fetches weights; needs no running supervisor."""

import signal
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import click

from hermesctl import completing
from hermesctl.command_result import acting, print_object
from hermesctl.neutral import neutral
from hermesctl.render import Column, megabytes
from hermesctl.show_rows import as_json, print_rows

if TYPE_CHECKING:
    from hermesctl.weight_catalogue import Weights
    from ipc.places import Places

_COLUMNS = (
    Column("name", "name"),
    Column("kind", "kind", rank=2),
    Column("size_bytes", "size", megabytes, right=True),
    Column("state", "state", state=True),
    Column("licence", "licence", rank=3),
    Column("purpose", "for", wide=True, rank=1),
)
_EXAMPLES = """\b
Examples:
  hermesctl models list
  hermesctl models pull smollm2-135m
"""
_LIST_EXAMPLES = """\b
Examples:
  hermesctl models list
  hermesctl models list --json
"""
_PULL_EXAMPLES = """\b
Examples:
  hermesctl models pull smollm2-135m
  hermesctl models pull smollm2-135m tiny.en
  hermesctl models pull tiny.en --json
"""
_DEMONSTRATION = """\
smollm2-135m is a demonstration: it chats, it is often wrong, and it does not call tools.
Three keys in {settings} replace it with any OpenAI-compatible model:
  [model]
  base_url = "http://127.0.0.1:8000/v1"
  name = "the-model"
  api_key_env = "OPENAI_API_KEY"
"""
# Without a terminal one line per tenth: enough to show activity in a log.
_PLAIN_STEPS = 10


@click.group(epilog=_EXAMPLES)
def models() -> None:
    """List and fetch the weights of the embedded models."""


@models.command("list", epilog=_LIST_EXAMPLES)
@as_json
@click.pass_obj
def list_models(places: "Places", form: str) -> None:
    """Show the weights that can be pulled, and which are there and verified."""
    from hermesctl.weight_catalogue import CATALOGUE, presence

    rows = [_row(weights, presence(weights, places.models)) for weights in CATALOGUE]
    print_rows(form, rows, _COLUMNS, "no weights are known")


@models.command("pull", epilog=_PULL_EXAMPLES)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completing.weights)
@acting
@click.pass_obj
def pull_models(places: "Places", names: tuple[str, ...], form: str) -> None:
    """Fetch weights, compare them with their pinned checksum, and put them in the models folder."""
    from hermesctl.weight_catalogue import find, pull
    from hermesctl.weight_sources import sources

    wanted = [find(name) for name in dict.fromkeys(names)]
    # The default action would leave the download's folder behind.
    signal.signal(signal.SIGTERM, _end_orderly)
    for weights in wanted:
        with _progress(weights) as progress:
            pull(weights, places.models, sources(), progress, progress.say)
        if weights.kind == "language" and form != "json":
            click.echo(_DEMONSTRATION.format(settings=places.settings_file), nl=False)
    if form == "json":
        folders = {weights.name: str(places.models / weights.name) for weights in wanted}
        print_object({"verified": folders})


def _row(weights: "Weights", presence: str) -> dict[str, Any]:
    return {
        "name": weights.name,
        "kind": weights.kind,
        "size_bytes": weights.size_bytes,
        "state": presence,
        "licence": weights.licence,
        "purpose": weights.purpose,
    }


def _end_orderly(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _progress(weights: "Weights") -> "_Bar | _Lines":
    return _Bar(weights) if sys.stderr.isatty() else _Lines(weights)


class _Bar:
    """A bar on a terminal; drawn by the caller's own thread, since a fork follows."""

    def __init__(self, weights: "Weights") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._total = weights.size_bytes
        self._rich = Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            console=Console(file=sys.__stderr__), auto_refresh=False, transient=True,
        )  # fmt: skip
        self._task = self._rich.add_task(weights.name, total=self._total)

    def __enter__(self) -> "_Bar":
        self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rich.stop()

    def advance_to(self, received_bytes: int) -> None:
        self._rich.update(self._task, completed=min(received_bytes, self._total), refresh=True)

    def say(self, line: str) -> None:
        self._rich.console.print(neutral(line), markup=False, highlight=False)


class _Lines:
    """Plain lines without a terminal."""

    def __init__(self, weights: "Weights") -> None:
        self._name = weights.name
        self._total = weights.size_bytes
        self._step = 0

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stderr.flush()

    def advance_to(self, received_bytes: int) -> None:
        step = min(_PLAIN_STEPS, received_bytes * _PLAIN_STEPS // self._total)
        if step > self._step:
            self._step = step
            self.say(f"{self._name}: {step * 100 // _PLAIN_STEPS} %")

    def say(self, line: str) -> None:
        click.echo(line, err=True)
