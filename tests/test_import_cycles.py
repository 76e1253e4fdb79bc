"""The product has no import cycles; imports for types and imports inside functions count too."""

import ast
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.house_rules import PRODUCT, ROOT

Graph = Mapping[str, frozenset[str]]


def module_graph(sources: Mapping[str, str]) -> Graph:
    """The imports among these modules, by module name. A package stands for its __init__."""
    return {name: frozenset(_imports(name, text, sources.keys())) - {name} for name, text in sources.items()}


def _imports(importer: str, text: str, modules: Iterable[str]) -> Iterator[str]:
    known = frozenset(modules)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{importer} has a relative import"
            base = node.module or ""
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif base in known:
                    yield base


def cycles(graph: Graph) -> frozenset[frozenset[str]]:
    """The sets of modules that all reach each other."""
    reached = {name: _reachable(graph, name) for name in graph}
    return frozenset(
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    )


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found


def _product() -> dict[str, str]:
    sources = {}
    for package in PRODUCT:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return sources


def test_the_modules_of_the_product_have_no_import_cycle() -> None:
    graph = module_graph(_product())
    assert "hermesctl.chat.screen" in graph["hermesctl.chat.run"]
    assert [sorted(each) for each in cycles(graph)] == []


@pytest.mark.parametrize(
    "second",
    [
        "from p import a",
        "import p.a",
        "from p.a import name",
        "def f():\n    from p import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import Name",
    ],
)
def test_every_form_of_import_closes_a_cycle(second: str) -> None:
    graph = module_graph({"p": "", "p.a": "from p.b import x", "p.b": second, "p.c": "import p.a"})
    assert cycles(graph) == {frozenset({"p.a", "p.b"})}
