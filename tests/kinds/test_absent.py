"""The table of what a kind cannot have: the document shows the same, and every name in it exists."""

from pathlib import Path

from tests.agents_real import real_kinds
from tests.kinds import own_kinds, scenarios
from tests.kinds.absent import ABSENT

_DOCUMENT = Path(__file__).resolve().parents[2] / "docs/agents.md"


def test_the_document_shows_what_a_kind_cannot_have() -> None:
    _, _, section = _DOCUMENT.read_text().partition("## What every kind has\n")
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    absent = [[agent, name, why] for agent, names in ABSENT.items() for name, why in names.items()]
    assert lines[2:] == absent


def test_what_is_absent_is_a_scenario_of_a_kind() -> None:
    assert set(ABSENT) <= {*own_kinds.KINDS, *real_kinds.KINDS}
    assert {name for names in ABSENT.values() for name in names} <= set(scenarios.names())
