"""The shape of a syntax node: its source with every name and string replaced by a letter.

A guard is found again by its shape, so that renaming a variable, a field, a function or a module does not
lose it, while a change of its logic does. `if worker is None or worker.pid != event.pid:` has the shape
`if a is None or b != c: ...`:

- A dotted name is one letter, whatever its length: `turns.pause(turn)` and `pause(turn)` have one shape, as
  a module that is merged into another must not change it. One name has one letter throughout a shape.
- Numbers, None, True, False and the names of called builtins (`len`, `max`) stay.
- The body of a compound statement is `...`: only its header counts.
"""

import ast
import builtins
import string
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass

_WITH_HEADER = (ast.If, ast.While, ast.For, ast.With)
_WITHOUT_SHAPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match, ast.Try)
Bound = dict[str, ast.expr | str]


class _TooManyNames(Exception):
    """There are only so many letters."""


@dataclass(frozen=True)
class Shape:
    text: str
    # What each letter stands for: an expression, or the bare name of an attribute or a keyword.
    bound: Bound


class _Eraser(ast.NodeTransformer):
    def __init__(self) -> None:
        self.bound: Bound = {}
        self._letters: dict[str, str] = {}

    def letter(self, key: str, meaning: ast.expr | str) -> str:
        if key not in self._letters:
            if len(self._letters) == len(string.ascii_lowercase):
                raise _TooManyNames
            self._letters[key] = string.ascii_lowercase[len(self._letters)]
            self.bound[self._letters[key]] = meaning
        return self._letters[key]

    def _erased(self, node: ast.expr) -> ast.Name:
        return ast.Name(self.letter(ast.unparse(node), node), ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return self._erased(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Name:
        return self._erased(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self._erased(node) if isinstance(node.value, str | bytes) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if _is_dotted(node):
            return self._erased(node)
        return ast.Attribute(self.visit(node.value), self.letter(f".{node.attr}", node.attr), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not (isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)):
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        name = node.arg and self.letter(f"{node.arg}=", node.arg)
        return ast.keyword(name, self.visit(node.value))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self.letter(node.arg, ast.Name(node.arg, ast.Load())))


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def shape_of(node: ast.stmt | ast.expr) -> Shape | None:
    """None for a node without a header of its own, and for one with more names than there are letters."""
    if isinstance(node, _WITHOUT_SHAPE):
        return None
    eraser = _Eraser()
    try:
        erased = eraser.visit(_header(node))
    except _TooManyNames:
        return None
    return Shape(_on_one_line(erased), eraser.bound)


def _header(node: ast.stmt | ast.expr) -> ast.stmt | ast.expr:
    """A copy, made without the body: that may be most of a function."""
    header = copy(node)
    if isinstance(header, _WITH_HEADER):
        header.body = [ast.Expr(ast.Constant(...))]
    if isinstance(header, ast.If | ast.While | ast.For):
        header.orelse = []
    return deepcopy(header)


def canonical(text: str) -> str:
    """A shape as it was written by a person, in the spelling of `shape_of`."""
    return _on_one_line(ast.parse(text))


def _on_one_line(node: ast.AST) -> str:
    return " ".join(line.strip() for line in ast.unparse(node).splitlines())


def nodes_of(scope: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """All statements and expressions in the order of the source.

    An expression that is a whole statement is not listed beside its statement, which has the same shape.
    """
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.stmt | ast.expr) and not isinstance(scope, ast.Expr):
            yield child
        if not isinstance(child, ast.JoinedStr):
            yield from nodes_of(child)


def scopes_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Functions, classes and assigned names of a module, with their qualified names."""
    for child in ast.iter_child_nodes(tree):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name, child
            case ast.ClassDef(name=name):
                yield from scopes_of(child, f"{prefix}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name, child
