"""A mutant: the core without one of its guards.

The folder `guards` has one file a module, named after it. A file lists functions (`function`, `Class.method`,
or the name of a constant), under each its mutants, and under each of these one rewriting:

    current
        dying_workers_are_heard
            c if a in b else None => c

The left side is the shape of the guard (see shapes.py), the right side what takes its place, in the same
letters. An expression is replaced by an expression, a statement by statements: `pass` drops it, and `...`
keeps the body of a compound one. `[2 of 3]` behind a shape says which of the equal shapes of the function is
meant; without it, there is one. A longer name on the right side stands for itself.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.shapes import Bound, Shape, canonical, nodes_of, scopes_of, shape_of

_ROOT = Path(__file__).resolve().parent.parent.parent
GUARDS = Path(__file__).with_name("guards")
_ANCHOR = re.compile(r"(?P<shape>.+?)(?: \[(?P<number>\d+) of (?P<count>\d+)\])? => (?P<result>.+)")
_MEND = "`python -m tests.simulation.anchors --help` says how to anchor it again."


class DriftError(Exception):
    """The source no longer has what the mutant takes away."""


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str
    scope: str
    shape: str
    number: int
    count: int
    result: str

    @property
    def anchor(self) -> str:
        which = f" [{self.number} of {self.count}]" if self.count > 1 else ""
        return f"{self.shape}{which} => {self.result}"

    @property
    def _is_of_expression(self) -> bool:
        written = ast.parse(self.result).body
        return len(written) == 1 and isinstance(written[0], ast.Expr)

    def applied_to(self, source: str) -> ast.Module:
        """The module without the guard."""
        tree = ast.parse(source)
        scope = dict(scopes_of(tree)).get(self.scope)
        if scope is None:
            raise DriftError(f"{self.name}: {self.module} has no {self.scope}. {_MEND}")
        found = list(self.matches(scope))
        if len(found) != self.count:
            where = f"`{self.shape}` occurs {len(found)} times in {self.scope} of {self.module}"
            raise DriftError(f"{self.name}: {where}, not {self.count}. {_MEND}")
        target, shape = found[self.number - 1]
        self._replace(tree, target, shape)
        return ast.fix_missing_locations(tree)

    def matches(self, scope: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, Shape]]:
        """All nodes of the scope that have the shape of the guard."""
        written: ast.AST = ast.parse(self.shape).body[0]
        if isinstance(written, ast.Expr) and self._is_of_expression:
            written = written.value
        for node in nodes_of(scope):
            # Most nodes are of another kind. A letter alone may stand for several kinds.
            if type(node) is type(written) or isinstance(written, ast.Name):
                shape = shape_of(node)
                if shape is not None and shape.text == self.shape:
                    yield node, shape

    def _replace(self, tree: ast.Module, target: ast.stmt | ast.expr, shape: Shape) -> None:
        known = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} | set(dir(builtins))
        written = ast.parse(self.result)
        for name in (each.id for each in ast.walk(written) if isinstance(each, ast.Name)):
            if len(name) > 1 and name not in known:
                raise DriftError(f"{self.name}: {self.module} does not know `{name}`. Rename it here, too.")
        news = [_Filler(shape.bound).visit(each) for each in written.body]
        for new in news:
            if getattr(new, "body", None) and isinstance(target, ast.If | ast.While | ast.For | ast.With):
                new.body = target.body
                new.orelse = getattr(target, "orelse", [])
        _Replacer(target, news).visit(tree)


class _Filler(ast.NodeTransformer):
    """Puts in place of each letter what it stands for."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._bound.get(node.id)
        if not isinstance(found, ast.expr):
            return node
        found = deepcopy(found)
        if isinstance(found, ast.Name | ast.Attribute):
            found.ctx = node.ctx
        return found

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        return ast.Attribute(self.visit(node.value), self._name(node.attr), node.ctx)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        return ast.keyword(node.arg and self._name(node.arg), self.visit(node.value))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._name(node.arg))

    def _name(self, letter: str) -> str:
        found = self._bound.get(letter, letter)
        return found if isinstance(found, str) else ast.unparse(found)


class _Replacer(ast.NodeTransformer):
    def __init__(self, target: ast.stmt | ast.expr, news: list[ast.stmt]) -> None:
        self._target = target
        self._news = news

    def visit(self, node: ast.AST) -> object:
        if node is not self._target:
            return super().visit(node)
        first = self._news[0]
        return first.value if isinstance(node, ast.expr) and isinstance(first, ast.Expr) else self._news


def read(path: Path) -> Iterator[Mutant]:
    scope = name = ""
    for line in path.read_text().splitlines():
        match len(line) - len(line.lstrip()):
            case 0:
                scope = line
            case 4:
                name = line.strip()
            case _:
                found = _ANCHOR.fullmatch(line.strip())
                if found is None:
                    raise ValueError(
                        f"{path.name}: {name} needs a line `SHAPE => RESULT`, not `{line.strip()}`"
                    )
                shape, result = canonical(found["shape"]), found["result"]
                number, count = int(found["number"] or 1), int(found["count"] or 1)
                yield Mutant(name, path.stem, scope, shape, number, count, result)


def path_of(module: str) -> Path:
    return _ROOT / f"{module.replace('.', '/')}.py"


def source_of(module: str) -> str:
    path = path_of(module)
    if not path.exists():
        raise DriftError(f"There is no module {module}: rename {module}.txt in the folder of guards. {_MEND}")
    return path.read_text()


MUTANTS: tuple[Mutant, ...] = tuple(each for path in sorted(GUARDS.glob("*.txt")) for each in read(path))
