"""The tests that are run for a module: tests_for.toml names them for modules and for whole packages."""

import subprocess
import tomllib
from functools import cache
from pathlib import Path

from tests.house_rules import PRODUCT, ROOT

REGISTRY = Path(__file__).with_name("tests_for.toml")
# Its mutants are written by hand.
_CORE = "supervisor.core"


def registered_tests(module: str) -> list[str]:
    """Those of the module itself, else those of the innermost package that has some."""
    registered, name = _registered(), module
    while name:
        if name in registered:
            return registered[name]
        name = name.rpartition(".")[0]
    return []


@cache
def _registered() -> dict[str, list[str]]:
    """Read once: the copies that are judged are made once, too."""
    registered: dict[str, list[str]] = tomllib.loads(REGISTRY.read_text())["tests"]
    return registered


def modules_below(names: list[str]) -> list[str]:
    """Modules by their own names, by their paths, or by the name of a package."""
    found: dict[str, None] = {}
    for name in names:
        dotted = name.removesuffix(".py").strip("/").replace("/", ".")
        below = [each for each in all_modules() if each == dotted or each.startswith(f"{dotted}.")]
        if not below:
            raise SystemExit(
                f"There is no module {name} outside the core. Name one such as supervisor.engine."
            )
        found |= dict.fromkeys(below)
    return list(found)


def modules_since(revision: str) -> list[str]:
    changed = subprocess.run(
        ["git", "diff", "--name-only", revision], cwd=ROOT, capture_output=True, text=True
    )
    if changed.returncode:
        raise SystemExit(f"git does not know the revision {revision}. `git log` lists those that exist.")
    names = {path.removesuffix(".py").replace("/", ".") for path in changed.stdout.splitlines()}
    return [module for module in all_modules() if module in names]


def all_modules() -> list[str]:
    paths = (path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py")))
    modules = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return [each for each in modules if not each.endswith("__init__") and not each.startswith(f"{_CORE}.")]
