"""The code map of the documents is what the code is, for every module and every import."""

import ast

import pytest

from tests.code_map import (
    ARCHITECTURE,
    MODULES,
    Module,
    architecture_with,
    module_page,
    modules,
    package_table,
)
from tests.house_rules import Source

REMEDY = "write it with `python -m tests.code_map` and read the diff"


@pytest.fixture(scope="module")
def found() -> list[Module]:
    return modules()


def test_every_package_is_in_the_architecture_with_its_imports(found: list[Module]) -> None:
    assert ARCHITECTURE.read_text() == architecture_with(package_table(found)), REMEDY


def test_every_module_is_in_the_code_map_with_its_imports(found: list[Module]) -> None:
    assert MODULES.read_text() == module_page(found), REMEDY


@pytest.mark.parametrize(
    "text",
    [
        "import supervisor.core.state",
        "from supervisor.core import state",
        "def f():\n    from supervisor.core.state import X",
    ],
)
def test_an_import_is_seen_wherever_it_stands(text: str) -> None:
    packages = ["supervisor", "supervisor/core", "supervisor/host"]
    assert ast.parse(text)
    assert Module(Source("supervisor/host/x.py", text)).imports(packages) == {"supervisor/core"}
