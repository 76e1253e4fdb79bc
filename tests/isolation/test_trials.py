"""The attacks from inside real cells, by root and by an ordinary user: what is promised is held."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.fake_model import FakeModel
from tests.isolation.surroundings import ORDINARY, ROOT_USER, OwnedService, Person, documented, folder_of

# No embedded model runs beside a configured one, and no database; nobody has no home folder.
NOT_HERE = {"embedded model", "database"}
# Sockets of the very user that the service runs as.
SOCKETS = {"systemd", "D-Bus", "containers", "key agents", "display", "tmux"}
PEOPLE = pytest.mark.parametrize("person", [ROOT_USER, ORDINARY], ids=["root", "ordinary"])


@pytest.fixture
def make(model: FakeModel) -> Iterator[Callable[..., OwnedService]]:
    with ExitStack() as made:

        def start(person: Person, **tables: str) -> OwnedService:
            if not person.can_run_this():
                pytest.skip("an ordinary user cannot run this interpreter, or not read these files")
            folder = made.enter_context(folder_of(person))
            service = OwnedService(folder, person, model, **tables)
            made.enter_context(service)
            return service

        yield start


def absent(person: Person) -> set[str]:
    return NOT_HERE | (set() if person == ROOT_USER else {"home folder"})


@PEOPLE
def test_h1_to_h11_every_attack_is_held_at_the_default_level(
    make: Callable[..., OwnedService], model: FakeModel, person: Person
) -> None:
    model.reset()
    service = make(person, workers="count = 1", sandbox='network = "none"')
    found = service.trial()
    assert (found.faults(), found.code) == ([], 0)
    assert found.report["level"] == "workspace"
    assert found.by_verdict("absent") == absent(person)
    assert found.by_verdict("broken") == set()
    promised = {name for name, mark in documented("workspace").items() if mark == "held"} | {"loopback"}
    assert promised - absent(person) <= found.by_verdict("held")
    # It is a turn like any other, and no model was asked.
    assert model.requests() == []
    turn = found.report["turn"]
    assert service.show("turns", session="isolation:default")[0]["state"] == "done"
    told = service.show("story", id=turn)
    assert "isolation" in {row.get("name") for row in told}


@PEOPLE
def test_what_opens_at_level_host_is_what_the_table_says(
    make: Callable[..., OwnedService], person: Person
) -> None:
    found = make(person, workers="count = 1", sandbox='level = "host"').trial()
    marks = documented("host")
    opened = found.by_verdict("open")
    assert (found.faults(), found.code) == ([], 0)
    assert found.report["level"] == "host"
    assert opened <= {name for name, mark in marks.items() if mark in ("open", "depends")}
    # Open to the service's user, and so to an agent that has the same.
    if "other user" in opened:
        assert {name for name, mark in marks.items() if mark == "open"} - absent(person) <= opened
        assert opened >= SOCKETS
    else:
        assert opened >= {"Unix sockets", "host files", "loopback"}
    assert all(row["why"] for row in found.report["attacks"] if row["verdict"] == "open")


def test_level_home_opens_the_home_folder_and_the_sockets_in_it(make: Callable[..., OwnedService]) -> None:
    found = make(ROOT_USER, workers="count = 1", sandbox='level = "home"').trial()
    marks = documented("home")
    assert (found.faults(), found.code) == ([], 0)
    assert found.by_verdict("open") <= {name for name, mark in marks.items() if mark != "held"}
    # The baits of this test lie in the folder that is HOME to the service.
    if "other user" in found.by_verdict("open"):
        assert found.by_verdict("open") >= SOCKETS


@PEOPLE
def test_a_weaker_cell_says_what_is_open(make: Callable[..., OwnedService], person: Person) -> None:
    found = make(person, workers='count = 1\ncell = "sweep"', sandbox='network = "none"').trial()
    marks = documented("weaker")
    opened = found.by_verdict("open")
    assert found.report["cell"] == "sweep"
    if "other user" in opened:
        expected = {name for name, mark in marks.items() if mark == "open"} | {"keys"}
        assert expected - absent(person) - {"loopback"} <= opened
    assert (found.faults(), found.code) == ([], 0)
    assert "loopback" in found.by_verdict("held")


def test_an_agent_of_its_own_sandbox_is_tried_by_name(
    make: Callable[..., OwnedService],
) -> None:
    tables = {"agents.builder": 'kind = "builtin"', "agents.builder.sandbox": 'level = "host"'}
    service = make(ROOT_USER, workers="count = 1", **tables)
    assert service.trial("--agent", "builder").report["level"] == "host"
    assert service.trial().report["level"] == "workspace"
    unknown = service.hermesctl("doctor", "--isolation", "--agent", "nobody")
    assert unknown.returncode == 4
    assert "there is no agent named 'nobody'" in unknown.stderr
    assert "default, builder" in unknown.stderr


def test_a_person_reads_a_line_for_each_attack(make: Callable[..., OwnedService]) -> None:
    service = make(ROOT_USER, workers="count = 1")
    done = service.hermesctl("doctor", "--isolation")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("agent default: level workspace, cell pidns, network host (isolation:default/")
    assert any(line.startswith("✔ H8  state") for line in lines)
    at = next(number for number, line in enumerate(lines) if line.startswith("! H2  loopback"))
    assert 'network = "host"' in lines[at + 1]
    assert " held · " in lines[-1]
    alone = service.hermesctl("doctor", "--agent", "default")
    assert alone.returncode == 2
    assert "--agent belongs to --isolation" in alone.stderr


def test_words_to_the_session_of_a_trial_are_refused_and_no_model_is_asked(
    make: Callable[..., OwnedService], model: FakeModel
) -> None:
    model.reset()
    service = make(ROOT_USER, workers="count = 1")
    service.say("isolation:default", "hello")
    failed = service.listen("isolation:default").ending("isolation:default/1")
    assert failed.type == "turn.failed"
    assert "doctor --isolation" in failed.fields["hint"]
    assert model.requests() == []
