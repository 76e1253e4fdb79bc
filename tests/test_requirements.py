"""`requirements/` holds, with hashes, what pyproject.toml asks for; `make lock` writes it."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house_rules import ROOT

# Each file and the extra it is for.
EXTRAS = {"run": "all", "dev": "dev"}
PINNED = re.compile(r"(?P<name>\S+)==(?P<version>\S+)(?P<hashes>( \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _locked(file: str) -> str:
    """Without comments: nothing is left but packages with their hashes."""
    return re.sub(r"^ *#.*\n", "", (ROOT / "requirements" / f"{file}.txt").read_text(), flags=re.MULTILINE)


def _versions(locked: str) -> dict[str, str]:
    return {found["name"]: found["version"] for found in PINNED.finditer(locked)}


def _wanted(project: dict[str, Any], extra: str) -> Iterator[Requirement]:
    """What an editable install with this extra takes: to build, to run, and the extras of an extra."""
    own = canonicalize_name(project["project"]["name"])
    extras = project["project"]["optional-dependencies"]
    lines = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras[extra]]
    while lines:
        requirement = Requirement(lines.pop())
        if canonicalize_name(requirement.name) == own:
            lines += (line for name in requirement.extras for line in extras[name])
        else:
            yield requirement


def _faults(project: dict[str, Any], file: str) -> list[str]:
    versions = _versions(_locked(file))
    faults = []
    for wanted in _wanted(project, EXTRAS[file]):
        version = versions.get(canonicalize_name(wanted.name))
        if version is None or version not in wanted.specifier:
            faults.append(f"requirements/{file}.txt has {version or 'nothing'} for {wanted}: run `make lock`")
    return faults


@pytest.mark.parametrize("file", EXTRAS)
def test_what_pyproject_asks_for_is_locked(file: str) -> None:
    assert _faults(PROJECT, file) == []


@pytest.mark.parametrize("file", EXTRAS)
def test_every_line_is_a_version_with_hashes_and_none_an_address(file: str) -> None:
    assert PINNED.sub("", _locked(file)) == ""
    assert "://" not in (ROOT / "requirements" / f"{file}.txt").read_text()


def test_developers_run_the_versions_that_users_run() -> None:
    assert _versions(_locked("run")).items() <= _versions(_locked("dev")).items()


@pytest.mark.parametrize("line", ["click>=1000", "not-locked", "hermes-supervisor[new]"])
def test_a_requirement_that_is_not_locked_is_named(line: str) -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    changed = {**extras, "all": [*extras["all"], line], "new": ["not-locked>=2"]}
    project = {**PROJECT, "project": {**PROJECT["project"], "optional-dependencies": changed}}
    for file in EXTRAS:
        (fault,) = _faults(project, file)
        assert fault.startswith(f"requirements/{file}.txt has ")
        assert fault.endswith(": run `make lock`")
