"""An agent in an environment of its own, as a user has it: `agents add`, then turns in its cell."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hermesctl.hand import ROOT, hermesctl
from tests.service import Service

# `ipc` and `worker` are packages of the user; `only_there` is installed in the environment only.
AGENT = """
import ipc, json, os, only_there, sys, threading, worker

def agent(context):
    while context.text == "slow":
        context.say("word ")
        threading.Event().wait(0.01)
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    del files["__main__"]
    shown = [sys.prefix, sys.base_prefix, os.path.dirname(files["msgspec"]), os.path.dirname(ipc.__file__)]
    return json.dumps({
        "words": [only_there.WORD, ipc.WORD, worker.WORD],
        "prefix": sys.prefix,
        "msgspec": files["msgspec"],
        "files": sorted(files.values()),
        "path": sys.path,
        "writable": [each for each in shown if not os.statvfs(each).f_flag & os.ST_RDONLY],
        "state": os.path.exists(context.text),
    })
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without any of our packages, and without pip."""
    folder = tmp_path_factory.mktemp("theirs") / "venv"
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "only_there.py").write_text("WORD = 'installed'\n")
    return folder


@pytest.mark.timeout(400)
def test_an_agent_runs_in_an_environment_without_any_package_of_ours(
    tmp_path: Path, environment: Path, make_service: Callable[..., Service]
) -> None:
    code = tmp_path / "code"
    for name in ("ipc", "worker"):
        (code / name).mkdir(parents=True)
        (code / name / "__init__.py").write_text(f"WORD = 'their {name}'\n")
    (code / "mine.py").write_text(AGENT)
    mine = f'kind = "python"\nentry = "mine:agent"\npath = "{code}"\npython = "{environment}/bin/python"'
    service = make_service(**{"agents.default": mine, "workers": "count = 1"})
    listener = service.listen("s")

    service.say("s", "too early")
    failed = listener.ending("s/1")
    assert "has no msgspec and pyzmq laid beside it" in failed.fields["error"]
    assert "hermesctl agents add default" in failed.fields["hint"]

    added = hermesctl(service.home, "agents", "add", "default", "--json")
    if "pip could not fetch" in added.err:
        pytest.skip("no package index is in reach: msgspec and pyzmq cannot be fetched")
    assert added.code == 0, added.err
    packages = json.loads(added.out)["folder"]
    assert Path(packages).is_relative_to(service.home)

    service.say("s", str(service.places.journal))
    found: dict[str, Any] = json.loads(listener.ending("s/2").fields["text"])
    assert found["words"] == ["installed", "their ipc", "their worker"]
    assert found["prefix"] == str(environment)
    assert found["msgspec"].startswith(packages)
    assert [file for file in found["files"] if file.startswith(f"{ROOT}/")] == []
    assert not {packages, str(ROOT)} & set(found["path"])
    # Its cell shows the interpreter, the environment, the packages and the code, read-only; not the state.
    assert (found["writable"], found["state"]) == ([], False)

    service.say("s", "slow")
    listener.until(lambda: "word word" in listener.words)
    service.interrupt("s")
    ended = listener.ending("s/3")
    assert (ended.type, ended.fields["killed"]["all_dead"]) == ("turn.interrupted", True)
    # Packages that are in use stay.
    again = hermesctl(service.home, "agents", "add", "default")
    assert (again.code, "fetching" in again.out) == (0, False), again
    assert [path.name for path in Path(packages).parent.iterdir()] == ["site-packages"]
    service.say("s", "again")
    assert listener.ending("s/4").type == "turn.done"
