"""The console's logic apart from the screen, by node's test runner; and the two scripts that are made."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "gateway" / "console"
ESBUILD = ROOT / "vendor" / "node_modules" / "esbuild"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_logic_of_the_console_keeps_its_rules() -> None:
    files = sorted((Path(__file__).parent / "logic").glob("*.test.mjs"))
    assert len(files) >= 3
    done = subprocess.run(["node", "--test", *map(str, files)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("record", ["vendor.json", "console.json"])
def test_a_made_script_is_the_one_that_was_made(record: str) -> None:
    written = json.loads((CONSOLE / record).read_text())
    hint = f"{written['file']} is not what `make console` wrote: run it again"
    assert sha256(CONSOLE / written["file"]) == written["sha256"], hint


def test_the_script_of_the_console_is_made_of_the_modules_as_they_are() -> None:
    written = json.loads((CONSOLE / "console.json").read_text())
    modules = {path.name: sha256(path) for path in (CONSOLE / "modules").iterdir()}
    assert written["modules"] == modules, "a module has changed: run `make console`"


@pytest.mark.skipif(not ESBUILD.is_dir(), reason="esbuild is not installed: npm ci --prefix vendor")
def test_the_made_scripts_are_what_the_build_makes() -> None:
    build = ["node", "vendor/build.js", "--check"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_scripts_that_a_browser_loads_are_small() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), mtime=0)) for path in CONSOLE.glob("*.js")}
    assert sizes.keys() == {"console.js", "vendor.js", "service-worker.js"}
    assert sum(sizes.values()) <= 60_000


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
    script = (CONSOLE / "modules" / "help_view.js").read_text()
    keys = re.findall(r'^  \["([^"]+)", "', script, re.MULTILINE)
    page = (ROOT / "docs" / "console.md").read_text()
    assert len(keys) >= 6
    assert (
        re.findall(r"^\| (\S[^|]*?) \|", page.partition("## Keys")[2].partition("## ")[0], re.MULTILINE)[2:]
        == keys
    )
