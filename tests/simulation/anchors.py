"""Find the guards of the mutants again after the core has changed.

A renamed variable, field or called function needs nothing: a shape has no names. For the rest:

    python -m tests.simulation.anchors
        names each mutant whose guard is not found.
    python -m tests.simulation.anchors --since REVISION
        looks up the functions of these guards at a git revision, finds them under their new names
        and in their new modules, and writes the files of guards anew.
    python -m tests.simulation.anchors MODULE FUNCTION
        prints the shapes in a function, to anchor a mutant by hand when its guard itself has changed.

`--since` takes the function that is most like the old one, by its shapes first and by its names second. What
it did not find is named as before. Read the diff of the guards before it is committed.
"""

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import groupby
from pathlib import Path

from tests.simulation.mutant import GUARDS, MUTANTS, DriftError, Mutant, source_of
from tests.simulation.shapes import nodes_of, scopes_of, shape_of

_ROOT = Path(__file__).resolve().parent.parent.parent
# Less like the old function than this is another function.
_LIKENESS_MIN = 0.7


@dataclass(frozen=True)
class Scope:
    """A function, or another named part, of a module."""

    module: str
    name: str
    node: ast.stmt

    @cached_property
    def shapes(self) -> list[str]:
        found = (shape_of(node) for node in nodes_of(self.node) if isinstance(node, ast.stmt))
        return [shape.text if shape else "" for shape in found]

    @cached_property
    def text(self) -> str:
        return ast.unparse(self.node)

    def likeness(self, old: "Scope") -> tuple[float, float]:
        shapes = SequenceMatcher(None, old.shapes, self.shapes, autojunk=False)
        if min(shapes.real_quick_ratio(), shapes.quick_ratio()) < _LIKENESS_MIN:
            return 0.0, 0.0
        texts = SequenceMatcher(None, old.text, self.text, autojunk=False)
        return shapes.ratio(), texts.quick_ratio()


def drifted() -> list[tuple[Mutant, str]]:
    found = []
    for mutant in MUTANTS:
        try:
            mutant.applied_to(source_of(mutant.module))
        except DriftError as error:
            found.append((mutant, str(error)))
    return found


def scopes_in(module: str, source: str) -> list[Scope]:
    return [Scope(module, name, node) for name, node in scopes_of(ast.parse(source))]


def scopes_now(package: str) -> list[Scope]:
    files = sorted((_ROOT / package).rglob("*.py"))
    modules = {".".join(path.relative_to(_ROOT).with_suffix("").parts): path for path in files}
    return [scope for module, path in modules.items() for scope in scopes_in(module, path.read_text())]


def scopes_then(module: str, revision: str) -> dict[str, Scope]:
    path = f"{revision}:{module.replace('.', '/')}.py"
    source = subprocess.run(["git", "show", path], cwd=_ROOT, capture_output=True, text=True, check=True)
    return {scope.name: scope for scope in scopes_in(module, source.stdout)}


def anchored_anew(revision: str) -> list[Mutant]:
    lost = {mutant.name for mutant, _ in drifted()}
    then = {module: scopes_then(module, revision) for module in {each.module for each in MUTANTS}}
    now = scopes_now(MUTANTS[0].module.partition(".")[0])
    # Where a function was before, no other one has moved to.
    new = [scope for scope in now if scope.name not in then.get(scope.module, {})]
    found: list[Mutant] = []
    for (module, name), group in groupby(MUTANTS, key=lambda each: (each.module, each.scope)):
        mutants = list(group)
        if not lost.isdisjoint(each.name for each in mutants):
            old = then[module][name]
            stayed = [scope for scope in now if (scope.module, scope.name) == (module, name)]
            scope = stayed[0] if stayed else counterpart(old, new)
            mutants = [moved(each, old, scope) if scope else each for each in mutants]
        found += mutants
    return found


def counterpart(old: Scope, candidates: list[Scope]) -> Scope | None:
    best = max(candidates, key=lambda scope: scope.likeness(old), default=None)
    return best if best and best.likeness(old)[0] >= _LIKENESS_MIN else None


def moved(mutant: Mutant, old: Scope, new: Scope) -> Mutant:
    """The mutant of the guard at the same place of the new function."""
    there = [node for node, _ in mutant.matches(new.node)]
    mutant = replace(mutant, module=new.module, scope=new.name)
    if len(there) == mutant.count:
        return mutant
    target = [node for node, _ in mutant.matches(old.node)][mutant.number - 1]
    alike = [node for node in there if ast.unparse(node) == ast.unparse(target)]
    if len(alike) != 1:
        return mutant
    return replace(mutant, number=there.index(alike[0]) + 1, count=len(there))


def write(mutants: list[Mutant]) -> None:
    files: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in mutants:
        files[each.module][each.scope] += [f"    {each.name}", f"        {each.anchor}"]
    for path in GUARDS.glob("*.txt"):
        path.unlink()
    for module, scopes in files.items():
        lines = [line for name, lines in scopes.items() for line in (name, *lines)]
        (GUARDS / f"{module}.txt").write_text("\n".join(lines) + "\n")


def print_shapes(module: str, name: str) -> None:
    for node in nodes_of(dict(scopes_of(ast.parse(source_of(module))))[name]):
        shape = shape_of(node)
        if shape is not None and len(shape.text) > 1:
            kind = "statement" if isinstance(node, ast.stmt) else "expression"
            print(f"line {node.lineno}, {kind}: {shape.text}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", metavar="REVISION")
    parser.add_argument("function", nargs="*", metavar="MODULE FUNCTION")
    chosen = parser.parse_args()
    if chosen.function:
        module, name = chosen.function
        print_shapes(module, name)
    elif chosen.since:
        write(anchored_anew(chosen.since))
        sys.exit(subprocess.run([sys.executable, "-m", "tests.simulation.anchors"], cwd=_ROOT).returncode)
    else:
        messages = [message for _, message in drifted()]
        sys.exit("\n".join(messages) if messages else 0)


if __name__ == "__main__":
    main()
