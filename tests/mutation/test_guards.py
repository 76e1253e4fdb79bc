"""Every guard of `guards` is needed: without it, the test that guard_tests.toml names for it turns red.

These are guards outside the core, in the place where an effect is held back. They are hunted with the
variable CI set; otherwise those that were noticed before are left out until their module or their test has
changed.
"""

import ast
import hashlib
import os
import tempfile
import tomllib
from pathlib import Path

import pytest

from tests.house_rules import ROOT
from tests.mutation.slot import Outcome, Slot
from tests.simulation.mutant import Mutant, read, source_of

_FOLDER = Path(__file__).parent
_GUARDS = [each for path in sorted((_FOLDER / "guards").glob("*.txt")) for each in read(path)]
_TESTS: dict[str, str] = tomllib.loads((_FOLDER / "guard_tests.toml").read_text())
# One test, on a busy machine. A guard without which its test hangs is noticed.
_SECONDS_MAX = 120.0
# Hunted beside each other.
_SHARES = 3
_PAGE = (ROOT / "docs/mutants.md").read_text()


def _state(guard: Mutant) -> str:
    test = (ROOT / _TESTS[guard.name].partition("::")[0]).read_text()
    parts = (guard.scope, guard.anchor, source_of(guard.module), test)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("guard", _GUARDS, ids=lambda guard: guard.name)
def test_the_guard_is_where_its_file_says_and_the_page_names_it(guard: Mutant) -> None:
    source = source_of(guard.module)
    assert ast.unparse(guard.applied_to(source)) != ast.unparse(ast.parse(source))
    assert f"`{guard.name}`" in _PAGE
    assert f"`{_TESTS[guard.name].partition('::')[2]}`" in _PAGE


def test_each_guard_has_a_test_and_one_name() -> None:
    assert sorted(guard.name for guard in _GUARDS) == sorted(_TESTS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", range(_SHARES))
def test_each_missing_guard_is_noticed(share: int, pytestconfig: pytest.Config) -> None:
    noticed = pytestconfig.cache
    assert noticed is not None
    guards = _GUARDS[share::_SHARES]
    states = {guard.name: _state(guard) for guard in guards}
    known = [name for name in states if noticed.get(f"guards/{name}", "") == states[name]]
    hunted = [guard for guard in guards if os.environ.get("CI") or guard.name not in known]
    assert not hunted or _unnoticed(hunted) == []
    for guard in hunted:
        noticed.set(f"guards/{guard.name}", states[guard.name])


def _unnoticed(guards: list[Mutant]) -> list[str]:
    found = []
    # Not in the test's own folder, whose path is too long for sockets in folders below it.
    with tempfile.TemporaryDirectory(prefix="guards-", ignore_cleanup_errors=True) as folder:
        slot = Slot(Path(folder))
        try:
            tests = sorted({_TESTS[guard.name] for guard in guards})
            whole = slot.judged(tests, _SECONDS_MAX * len(tests)).outcome
            assert whole is Outcome.SURVIVED, slot.output.read_text()
            for guard in guards:
                text = ast.unparse(guard.applied_to(source_of(guard.module)))
                finding = slot.judged_with(guard.module, text, [_TESTS[guard.name]], _SECONDS_MAX)
                if finding.outcome not in (Outcome.KILLED, Outcome.TIMED_OUT):
                    found.append(guard.name)
        finally:
            slot.close()
    return found
