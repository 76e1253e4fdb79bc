"""The units in systemd/, for reading: what `hermesctl install` writes for a program in /opt.

`python -m tests.systemd.samples` writes them anew.
"""

from pathlib import Path

from hermesctl.unit_files import SLICE, SYSUSERS, Program, Scope, render, sysusers
from ipc.places import SYSTEM, Places
from tests.house_rules import ROOT

FOLDER = ROOT / "systemd"
PROGRAM = Program(
    "/opt/hermes/bin/python", Path("/opt/hermes/lib/python3.11/site-packages"), (Path("/opt/hermes"),)
)
YOURS = Places(
    Path("/home/you/.config/hermes-supervisor"),
    Path("/home/you/.local/state/hermes-supervisor"),
    Path("/run/user/1000/hermes-supervisor"),
)


def samples() -> dict[Path, str]:
    """The text of each file."""
    found = {FOLDER / SYSUSERS.name: sysusers()}
    for scope, places in ((Scope.SYSTEM, SYSTEM), (Scope.USER, YOURS)):
        for name, text in render(scope, places, PROGRAM).items():
            found[FOLDER / name if name == SLICE else FOLDER / scope / name] = text
    return found


if __name__ == "__main__":
    for path, text in samples().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
