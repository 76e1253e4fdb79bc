"""The single faults that can be planted in a module, each anchored by the shape of the code it changes.

A fault is a `Mutant` of tests/simulation/mutant.py: the shape of a node, and what takes its place. Planted
are:

- a call, an assignment to a field or a `del` that does not happen; a loop that never runs;
- a guard, that is an `if` without `else`, that never holds; one side of `and` and `or` left out; a bound left
  out, be it by `min` and `max`, a slice or the filter of a comprehension;
- a condition negated; `<` for `<=`, `==` for `!=`, `and` for `or`, `+` for `-`, and the reverse of each;
- 0 for 1, True for False and the reverse; the branches of a conditional expression exchanged;
- a `raise`, `break` or `continue` left out; None returned instead of a value; a return before the first call.

Left alone is what no test should depend on: annotations, decorators, lines of the log, texts.
"""

import ast
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.simulation.mutant import Mutant
from tests.simulation.shapes import Shape, nodes_of, scopes_of, shape_of

_Node = ast.stmt | ast.expr
_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CHANGED = (
    ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Expr, ast.For, ast.If, ast.Raise,
    ast.Return, ast.While, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.DictComp,
    ast.GeneratorExp, ast.IfExp, ast.ListComp, ast.SetComp, ast.Subscript, ast.UnaryOp,
)  # fmt: skip
_BOUNDS = ("max", "min")
_CONSTRUCTORS = ("__init__", "__post_init__")


def faults_of(module: str, source: str) -> list[Mutant]:
    """All faults of a module, in the order of its source."""
    scopes = dict(scopes_of(ast.parse(source)))
    return [fault for name, scope in scopes.items() for fault in _faults_in(module, name, scope)]


def sample(faults: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Faults by lot. The lot of a fault depends on nothing but itself: a change elsewhere leaves it in."""
    lots = {
        fault: random.Random(f"{seed} {fault.module} {fault.scope} {fault.anchor}").random()
        for fault in faults
    }
    return sorted(lots, key=lots.__getitem__)[:size]


def _faults_in(module: str, name: str, scope: ast.stmt) -> Iterator[Mutant]:
    alike: dict[tuple[type[_Node], str], list[_Node]] = defaultdict(list)
    shapes: dict[_Node, Shape] = {}
    for node in nodes_of(scope):
        shape = shape_of(node) if isinstance(node, _CHANGED) else None
        if shape is not None:
            shapes[node] = shape
            alike[type(node), shape.text].append(node)
    untouched = set(_untouched(scope))
    conditions = {node.test for node in ast.walk(scope) if isinstance(node, ast.If | ast.While)}
    is_constructor = name.rpartition(".")[2] in _CONSTRUCTORS
    first = _first_of(scope)
    for node, shape in shapes.items():
        if node in untouched or (is_constructor and isinstance(node, ast.Assign | ast.AnnAssign)):
            continue
        same = alike[type(node), shape.text]
        for result in _results(node, shape, node in conditions, node is first):
            line = f"{module}:{node.lineno}"
            yield Mutant(line, module, name, shape.text, same.index(node) + 1, len(same), result)


def _untouched(scope: ast.stmt) -> Iterator[ast.AST]:
    for node in ast.walk(scope):
        left: list[ast.AST | None] = []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                left = [*node.decorator_list, node.returns]
            case ast.arg() | ast.AnnAssign():
                left = [node.annotation]
            case ast.Expr(value=ast.Call() as call) if _is_log(call):
                left = [node]
        for each in left:
            if each is not None:
                yield from ast.walk(each)


def _is_log(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value).endswith("log")


def _first_of(scope: ast.stmt) -> ast.stmt | None:
    """The first statement of a function that returns nothing; None where a return would change nothing."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    returned = (node.value for node in ast.walk(scope) if isinstance(node, ast.Return))
    body = scope.body[1:] if ast.get_docstring(scope) else scope.body
    return body[0] if len(body) > 1 and not any(returned) else None


def _results(node: _Node, shape: Shape, is_condition: bool, is_first: bool) -> Iterator[str]:
    """What takes the place of a node, in the letters of its shape."""
    written: ast.AST = ast.parse(shape.text).body[0]
    if isinstance(written, ast.Expr) and isinstance(node, ast.expr):
        written = written.value
    match node, written:
        case ast.stmt(), _ if isinstance(node, ast.If | ast.While) and isinstance(
            written, ast.If | ast.While
        ):
            written.test = _negated(written.test)
            yield _text(written)
            if isinstance(node, ast.If) and not node.orelse:
                yield "pass"
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())), _:
            yield "pass"
            if is_first:
                yield "return"
        case ast.For() | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Break() | ast.Continue(), _:
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]), _:
            yield "pass"
        case ast.Return(value=ast.expr() as value), _ if not isinstance(value, ast.Constant):
            yield "return None"
        case ast.Compare(ops=[op]), ast.Compare():
            if not is_condition or isinstance(op, _ORDERS):
                written.ops = [_SWAPPED[type(op)]()]
                yield _text(written)
        case ast.BoolOp(), ast.BoolOp(values=sides):
            for side in sides:
                yield _joined(written.op, [each for each in sides if each is not side])
            yield _joined(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), sides)
        case ast.Call(func=ast.Name(id=name), args=[_, _], keywords=[]), ast.Call() if name in _BOUNDS:
            yield from map(_text, written.args)
        case ast.Subscript(slice=ast.Slice(upper=ast.expr(), step=None)), ast.Subscript():
            yield _text(written.value)
        case _, ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if any(each.ifs for each in written.generators):
                for each in written.generators:
                    each.ifs = []
                yield _text(written)
        case ast.UnaryOp(op=ast.Not()), ast.UnaryOp() if not is_condition:
            yield _text(written.operand)
        case ast.BinOp(op=ast.Add() | ast.Sub()), ast.BinOp():
            written.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield _text(written)
        case ast.IfExp(), ast.IfExp():
            written.body, written.orelse = written.orelse, written.body
            yield _text(written)
        case ast.Constant(value=bool(value)), _ if not is_condition:
            yield str(not value)
        case ast.Constant(value=int(value)), _ if type(value) is int and value in (0, 1):
            yield str(1 - value)


def _joined(operator: ast.boolop, sides: list[ast.expr]) -> str:
    return _text(ast.BoolOp(operator, sides) if len(sides) > 1 else sides[0])


def _negated(condition: ast.expr) -> ast.expr:
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(ops=[op]) if not isinstance(op, _ORDERS):
            return ast.Compare(condition.left, [_SWAPPED[type(op)]()], condition.comparators)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
    return ast.UnaryOp(ast.Not(), condition)


def _text(node: ast.AST) -> str:
    return " ".join(line.strip() for line in ast.unparse(node).splitlines())
