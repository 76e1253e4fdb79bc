"""Lays msgspec and pyzmq beside a foreign interpreter, and checks that a zygote can start in it.

pip runs in that interpreter, its own one or ours, and installs into a folder beside the final one. That
folder takes its place only when the interpreter has imported the packages from it. So a run that is cut
short, or a second one at the same time, leaves no half of them.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.weight_sources import ENVIRONMENT
from ipc import foreign_python, interpreter
from ipc.places import Places, make_private

_PIP_SECONDS_MAX = 300.0
_START_SECONDS_MAX = 60.0
_COMPLAINT_CHARACTERS = 160


def lay_beside(places: Places, agent: str, python: str, kind: str, say: Callable[[str], None]) -> str:
    """Returns the folder of the packages."""
    tag, (fault, hint) = foreign_python.version(python, agent)
    if fault:
        raise CommandError(fault, hint, Exit.REFUSED)
    folder = Path(foreign_python.folder(places, tag))
    make_private(places.state)
    folder.parent.mkdir(parents=True, exist_ok=True)
    wanted = [f"{package}=={installed(package)}" for package in foreign_python.NEEDED]
    # Runtimes that are warm have these files open: they are replaced only by other versions.
    if not _are_there(python, folder, wanted):
        with tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as place:
            staged = Path(place) / folder.name
            say(f"fetching {' and '.join(wanted)} for {python} …")
            _install(python, staged, wanted)
            _check_packages(python, staged)
            _replace(staged, folder, Path(place) / "old")
    say(f"starting a process of kind {kind} …")
    _check_start(python, str(folder), agent, kind)
    return str(folder)


def _are_there(python: str, folder: Path, wanted: list[str]) -> bool:
    names = [f"{each.replace('==', '-')}.dist-info" for each in wanted]
    return all((folder / name).is_dir() for name in names) and not foreign_python.fault(
        python, (str(folder),)
    )


def _install(python: str, folder: Path, wanted: list[str]) -> None:
    # Only wheels: nothing of a package is run, and no compiler is needed.
    options = [
        "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check",
        "--no-input", "--progress-bar", "off", "--no-compile", "--target", str(folder), *wanted,
    ]  # fmt: skip
    pip = _pip(python)
    done = _run([*pip, *options], _PIP_SECONDS_MAX, "pip has not ended")
    if done.returncode != 0:
        hint = f"check pip's settings and the network: {' '.join(pip)} download {' '.join(wanted)}"
        raise CommandError(f"pip could not fetch the packages: {_last_line(done.stderr)}", hint, Exit.REFUSED)


def _pip(python: str) -> list[str]:
    """pip of that interpreter; where it has none, ours, run by that interpreter."""
    own = [python, *interpreter.FLAGS, "-m", "pip"]
    if _run([*own, "--version"], _START_SECONDS_MAX, "pip has not ended").returncode == 0:
        return own
    if find_spec("pip") is None:
        hint = f"install pip there: {python} -m ensurepip"
        raise CommandError(f"neither {python} nor the service's interpreter has pip", hint, Exit.REFUSED)
    return [*interpreter.command("pip"), "--python", python]


def _check_packages(python: str, folder: Path) -> None:
    if found := foreign_python.fault(python, (str(folder),)):
        fault = f"{python} cannot import the packages that were fetched for it"
        hint = "use a Python that wheels are made for, such as one of python.org or of the distribution"
        raise CommandError(fault, hint, Exit.REFUSED) from RuntimeError(found[0])


def _check_start(python: str, packages: str, agent: str, kind: str) -> None:
    """Imports what a zygote of this kind needs of ours; the agent's own code is run only in its cell."""
    line = interpreter.command("worker.kind_check", kind, python=python, path=(packages,))
    done = _run(line, _START_SECONDS_MAX, f"{python} has not ended")
    if done.returncode != 0:
        fault = f"an agent of kind {kind} cannot start in {python}: {_last_line(done.stderr)}"
        hint = f"install it there, or remove python from its table [agents.{agent}] of hermes.toml"
        raise CommandError(fault, hint, Exit.REFUSED)


def _replace(staged: Path, folder: Path, old: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, old)
    try:
        os.rename(staged, folder)
    except OSError:
        # Another run was faster; its packages are the same.
        shutil.rmtree(staged)


def _run(line: list[str], seconds_max: float, late: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds_max,
            cwd=interpreter.WORKING_DIRECTORY,
            env=interpreter.environment(*ENVIRONMENT),
            # Agents may run as another user.
            umask=0o022,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"{late} after {seconds_max:.0f} s", "try again", Exit.REFUSED) from None


def _last_line(text: str) -> str:
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return said[-1][:_COMPLAINT_CHARACTERS] if said else "it ended without a word"
