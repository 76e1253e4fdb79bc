"""The list of attacks, the promises about them and the documents say the same."""

import pytest

from hermesctl.doctor.cell_look import LOOKS
from hermesctl.doctor.promises import COLUMNS, Column, column, judge, promise
from hermesctl.doctor.trial import in_order
from ipc.interpreter import OURS, PACKAGES
from ipc.isolation import ATTACKS, Result
from tests.house_rules import PRODUCT
from tests.isolation.surroundings import documented
from worker.attacks.attack_table import FUNCTIONS


def test_every_attack_is_carried_out_and_every_one_is_listed() -> None:
    names = [attack.name for attack in ATTACKS]
    assert set(names) == {*FUNCTIONS, *LOOKS}
    assert len(names) == len(set(names)) == len(FUNCTIONS) + len(LOOKS)
    assert all(attack.row and attack.tried and attack.matters for attack in ATTACKS)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_documents_promise_what_doctor_judges_by(name: Column) -> None:
    assert documented(name) == {attack.name: promise(attack.name, name, "host") for attack in ATTACKS}


def test_what_is_open_in_spite_of_a_promise_is_a_fault() -> None:
    attack = next(attack for attack in ATTACKS if attack.name == "state")
    kinds = {verdict: Result("state", verdict) for verdict in ("held", "open", "absent", "broken")}
    faults = {verdict for verdict, result in kinds.items() if judge(attack, result, "host", "host").is_fault}
    assert faults == {"open", "broken"}
    assert judge(attack, kinds["open"], "host", "host").why == attack.matters
    let_through = judge(attack, kinds["open"], "weaker", "host")
    assert not let_through.is_fault
    assert "no view" in let_through.why


def test_a_trial_that_leaves_an_attack_out_has_not_tried_it() -> None:
    told = in_order([Result("state", "held"), Result("no such attack", "held")])
    assert [result.name for result in told] == [attack.name for attack in ATTACKS]
    assert [result.name for result in told if result.verdict == "held"] == ["state"]
    assert {result.verdict for result in told if result.name != "state"} == {"broken"}


def test_network_none_is_a_promise_in_every_cell() -> None:
    assert {promise("loopback", each, "none") for each in COLUMNS} == {"held"}
    assert {promise("loopback", each, "host") for each in COLUMNS} == {"open"}


def test_a_cell_without_namespaces_has_no_level() -> None:
    assert column("host", "sweep") == column("workspace", "cgroup") == "weaker"
    assert column("home", "pidns") == "home"


def test_the_packages_that_cells_protect_are_those_of_the_product() -> None:
    assert set(OURS) == {name for name in PRODUCT if (PACKAGES / name).is_dir()}
