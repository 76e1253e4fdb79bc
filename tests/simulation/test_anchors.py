"""A guard is found again after names have changed, and missed by name after its logic has."""

import ast
from dataclasses import replace

import pytest

from tests.simulation.anchors import counterpart, moved, scopes_in
from tests.simulation.mutant import DriftError, Mutant

_SOURCE = """
def current(state, who):
    worker = state.workers.get(who.seat)
    if worker is None or who.epoch != state.epoch:
        return None
    seats.note(state, worker)
    return worker
"""
_RENAMED = """
def current_worker(pool, identity):
    found = pool.processes.get(identity.slot)
    if found is None or identity.term != pool.term:
        return None
    note(pool, found)
    return found
"""
_MUTANT = Mutant("any_epoch_counts", "core.pool", "current", "a is None or b != c", 1, 1, "a is None")
_DROPPED = Mutant("nobody_notes", "core.pool", "current", "a(b, c)", 1, 1, "pass")


def _changed(mutant: Mutant, source: str) -> str:
    """What became of the one line that differs."""
    before, after = ast.unparse(ast.parse(source)), ast.unparse(mutant.applied_to(source))
    return "".join(line.strip() for line in after.splitlines() if line not in before.splitlines())


def test_other_names_have_the_same_shape() -> None:
    mutant = replace(_MUTANT, scope="current_worker")
    assert _changed(_MUTANT, _SOURCE) == "if worker is None:"
    assert _changed(mutant, _RENAMED) == "if found is None:"
    assert _changed(replace(_DROPPED, scope="current_worker"), _RENAMED) == "pass"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "who.epoch != state.epoch",
            "who.epoch > state.epoch",
            "occurs 0 times in current of core.pool, not 1",
        ),
        ("    return worker\n", "    return state is None or who != worker\n", "occurs 2 times"),
        ("def current(", "def present(", "core.pool has no current"),
    ],
)
def test_other_logic_is_missed_by_name(old: str, new: str, complaint: str) -> None:
    with pytest.raises(DriftError, match=f"any_epoch_counts: .*{complaint}"):
        _MUTANT.applied_to(_SOURCE.replace(old, new))


def test_a_name_of_the_result_must_be_known() -> None:
    with pytest.raises(DriftError, match="does not know `nowhere`"):
        replace(_MUTANT, result="a is nowhere").applied_to(_SOURCE)
    assert _changed(replace(_MUTANT, result="a is state"), _SOURCE) == "if worker is state:"


def test_a_body_stays_and_several_statements_take_one_place() -> None:
    forced = replace(_MUTANT, shape="if a is None or b != c: ...", result="if True: ...")
    assert _changed(forced, _SOURCE) == "if True:"
    twice = replace(_DROPPED, result="a(b, c); worker.clear()")
    assert _changed(twice, _SOURCE) == "worker.clear()"


def test_a_function_is_found_under_its_new_name_in_its_new_module() -> None:
    old = scopes_in("core.pool", _SOURCE)[0]
    other = "def other(state):\n    return state.workers\n"
    found = counterpart(old, scopes_in("workers.pool", other + _RENAMED))
    assert found is not None
    assert (found.module, found.name) == ("workers.pool", "current_worker")
    assert counterpart(old, scopes_in("workers.pool", other)) is None
    anew = moved(_DROPPED, old, found)
    assert (anew.module, anew.scope, anew.anchor) == ("workers.pool", "current_worker", "a(b, c) => pass")


def test_a_guard_with_a_new_neighbour_of_its_shape_is_counted_anew() -> None:
    old = scopes_in("core.pool", _SOURCE)[0]
    new = scopes_in(
        "core.pool", _SOURCE.replace("    seats.note", "    seats.see(state, who)\n    seats.note")
    )
    assert moved(_DROPPED, old, new[0]).anchor == "a(b, c) [2 of 2] => pass"
