"""The console's logic apart from the screen, by node's test runner; and the vendored script."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "gateway" / "console"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_logic_of_the_console_keeps_its_rules() -> None:
    files = sorted((Path(__file__).parent / "logic").glob("*.test.mjs"))
    assert len(files) >= 3
    done = subprocess.run(["node", "--test", *map(str, files)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:]


def test_the_vendored_script_is_the_one_that_was_made() -> None:
    written = json.loads((CONSOLE / "vendor.json").read_text())
    assert hashlib.sha256((CONSOLE / written["file"]).read_bytes()).hexdigest() == written["sha256"], (
        "vendor.js is not what `make vendor` wrote: run it again"
    )


def test_the_vendored_packages_are_those_of_the_lock_and_have_their_licences() -> None:
    written = json.loads((CONSOLE / "vendor.json").read_text())
    lock = json.loads((ROOT / "vendor" / "package-lock.json").read_text())["packages"]
    licences = (CONSOLE / "vendor-licences.txt").read_text()
    for package in written["packages"]:
        locked = lock[f"node_modules/{package['name']}"]
        assert (locked["version"], locked["integrity"]) == (package["version"], package["integrity"])
        assert f"{package['name']} {package['version']} ({package['licence']})" in licences
    wanted = set(lock[""]["dependencies"])
    assert wanted <= {package["name"] for package in written["packages"]}


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((ROOT / "vendor" / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []


def test_every_key_of_the_console_is_documented() -> None:
    """The list that `?` shows is the one of docs/console.md."""
    script = (CONSOLE / "help_view.js").read_text()
    keys = re.findall(r'^  \["([^"]+)", "', script, re.MULTILINE)
    page = (ROOT / "docs" / "console.md").read_text()
    assert len(keys) >= 6
    assert (
        re.findall(r"^\| (\S[^|]*?) \|", page.partition("## Keys")[2].partition("## ")[0], re.MULTILINE)[2:]
        == keys
    )
