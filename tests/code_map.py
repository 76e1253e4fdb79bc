"""The code map of the documents, made from the code: `python -m tests.code_map` writes it.

docs/architecture.md has a table of packages between two marks, docs/code-map.md one of all modules. A package
or module is described by the first sentence of its docstring; what it imports is read from the code.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.house_rules import PRODUCT, ROOT, Source, python_sources

ARCHITECTURE = ROOT / "docs" / "architecture.md"
MODULES = ROOT / "docs" / "code-map.md"
_BEGIN = "<!-- packages: written by `python -m tests.code_map` -->\n"
_END = "<!-- end of packages -->\n"
_HEAD = """# Code map

Every module of the product, its first sentence, and the packages of the product that it imports beside its
own. `python -m tests.code_map` writes this page from the code, and `tests/test_code_map.py` compares them.
"""


class Module:
    def __init__(self, source: Source) -> None:
        path = PurePosixPath(source.path)
        self.package = str(path.parent)
        self.name = path.name
        self.sentence = _first_sentence(ast.get_docstring(source.tree) or "")
        self.source = source

    @property
    def is_package(self) -> bool:
        return self.name == "__init__.py"

    def imports(self, packages: Iterable[str]) -> set[str]:
        """The packages of the product that it imports, without its own."""
        dotted = {package.replace("/", "."): package for package in packages}
        found = set()
        for name in _imported(self.source.nodes):
            parts = name.split(".")
            for length in range(len(parts), 0, -1):
                package = dotted.get(".".join(parts[:length]))
                if package is not None:
                    found.add(package)
                    break
        return found - {self.package}


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return paragraph.rstrip(".").replace("|", "\\|")


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules() -> list[Module]:
    return [Module(source) for source in python_sources() if source.path.split("/")[0] in PRODUCT]


def package_table(found: list[Module]) -> str:
    """Packages in the order of the product, then by name, with what all their modules import together."""
    packages = sorted({module.package for module in found}, key=_order)
    imports: defaultdict[str, set[str]] = defaultdict(set)
    for module in found:
        imports[module.package] |= module.imports(packages)
    described = {module.package: module.sentence for module in found if module.is_package}
    rows = [f"| `{package}/` | {described[package]} | {_named(imports[package])} |" for package in packages]
    return "\n".join(["| package | subject | imports |", "| --- | --- | --- |", *rows]) + "\n"


def module_page(found: list[Module]) -> str:
    packages = sorted({module.package for module in found}, key=_order)
    parts = [_HEAD]
    for package in packages:
        parts += [f"\n## {package}/\n", "| module | subject | imports |", "| --- | --- | --- |"]
        parts += [
            f"| `{module.name}` | {module.sentence} | {_named(module.imports(packages))} |"
            for module in sorted(found, key=lambda module: module.name)
            if module.package == package and not module.is_package
        ]
    return "\n".join(parts) + "\n"


def architecture_with(table: str) -> str:
    text = ARCHITECTURE.read_text()
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + table + _END + after


def _order(package: str) -> tuple[int, str]:
    return PRODUCT.index(package.split("/")[0]), package


def _named(packages: set[str]) -> str:
    return ", ".join(f"`{package}`" for package in sorted(packages, key=_order))


if __name__ == "__main__":
    found = modules()
    ARCHITECTURE.write_text(architecture_with(package_table(found)))
    MODULES.write_text(module_page(found))
