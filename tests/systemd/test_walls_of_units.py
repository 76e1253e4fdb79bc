"""No manager of the host starts something for a turn: neither the machine's nor a user's own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.places import Places, find_places
from tests.acceptance.sight import FORK_BOMB, named, shell, sleeper, worker_of
from tests.fake_model import FakeModel
from tests.house_rules import ROOT
from tests.other_user import closed_ways
from tests.service import settings_for
from tests.systemd.box import Box
from tests.systemd.installed import Installed
from tests.waiting import until

_PERSON, _UID = "person", 4711
_PRIVATE = "systemd/private"
_SYSTEM_SOCKETS = ("/run/systemd/private", "/run/dbus/system_bus_socket", "/run/systemd/journal/stdout")
# By default.
_PROCESSES_MAX = 256
_CONNECTS = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' \"{at}\""


class PersonsOwn(Installed):
    """The service of an ordinary user, whose manager runs it."""

    def __init__(self, box: Box) -> None:
        home, run = Path("/home", _PERSON), Path("/run/user", str(_UID))
        places = Places(
            home / ".config/hermes-supervisor",
            home / ".local/state/hermes-supervisor",
            run / "hermes-supervisor",
        )
        super().__init__(box, places, "user", HOME=str(home), XDG_RUNTIME_DIR=str(run))

    def run(self, *line: str) -> int:
        """A command as that user; its exit status."""
        become = ("setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups")
        return self.box.try_to(*become, *line, PYTHONPATH=str(ROOT), **self._variables).returncode

    def ctl(self, *arguments: str) -> str:
        assert self.run(sys.executable, "-m", "hermesctl", *arguments) == 0
        return ""


class RootsOwn(Installed):
    """A service that root has started by hand."""

    def __init__(self, box: Box) -> None:
        home = Path("/var/tmp/roots-own")
        super().__init__(box, find_places(str(home)), "system", HERMES_SUPERVISOR_HOME=str(home))


@pytest.fixture
def roots_own(box: Box, model: FakeModel) -> Iterator[RootsOwn]:
    yours = RootsOwn(box)
    yours.set(settings_for(model, workers="count = 2"))
    yours.ctl("start")
    yield yours
    yours.__exit__(None, None, None)
    yours.ctl("stop")


@pytest.fixture
def persons_own(box: Box, model: FakeModel) -> Iterator[PersonsOwn]:
    box.try_to("useradd", "--create-home", f"--uid={_UID}", "--user-group", _PERSON)
    # In the box's own layer: the person's manager starts the service.
    for way in closed_ways().values():
        box.run("chmod", "a+x", str(way))
    box.run("systemctl", "start", f"user@{_UID}.service")
    yours = PersonsOwn(box)
    yours.set(settings_for(model, workers="count = 1"))
    box.run("chown", "--recursive", _PERSON, f"/home/{_PERSON}")
    yours.ctl("install", "--user")
    yield yours
    yours.__exit__(None, None, None)
    yours.ctl("uninstall", "--user")


def unit(mark: str) -> str:
    return f"[Service]\nExecStart=/bin/bash -c '{sleeper(mark)}'\n"


def attacked(service: Installed, model: FakeModel, *commands: str) -> list[str]:
    """The exit status of each command, run in a turn."""
    before = len(model.requests())
    lines = "; ".join(f"({command}) >/dev/null 2>&1; echo status $?" for command in commands)
    service.say("attacker", shell(lines))
    service.listen("attacker").ending("attacker/1")
    told = str(model.requests()[before + 1].messages[-1]["content"])
    return [line for line in told.splitlines() if line.startswith("status ")]


def test_h1_a_users_own_manager_starts_nothing_for_an_agent(
    persons_own: PersonsOwn, model: FakeModel
) -> None:
    mark = f"unit-{os.urandom(6).hex()}"
    persons_own.box.write(f"/home/{_PERSON}/.config/systemd/user/{mark}.service", unit(mark))
    starts = ("systemctl", "--user", "start", f"{mark}.service")
    at = f"/run/user/{_UID}/{_PRIVATE}"
    assert persons_own.run("sh", "-c", _CONNECTS.format(at=at)) == 0
    assert persons_own.run(*starts) == 0
    until(lambda: named(mark))
    assert persons_own.run("systemctl", "--user", "stop", f"{mark}.service") == 0
    until(lambda: not named(mark))

    variables = f"export XDG_RUNTIME_DIR=/run/user/{_UID}"
    found = attacked(
        persons_own,
        model,
        _CONNECTS.format(at=at),
        f"{variables}; {' '.join(starts)}",
        f"{variables}; systemd-run --user bash -c '{sleeper(mark)}'",
        *(_CONNECTS.format(at=each) for each in _SYSTEM_SOCKETS),
    )
    assert len(found) == 6
    assert "status 0" not in found
    assert named(mark) == set()


def attack_on_the_machine(service: Installed, model: FakeModel, pid: int) -> None:
    """`pid` is the supervisor's in the box."""
    mark = f"unit-{os.urandom(6).hex()}"
    service.box.write(f"/run/systemd/system/{mark}.service", unit(mark))
    group = service.box.run("sed", "-n", "s/^0:://p", f"/proc/{pid}/cgroup").stdout.strip()
    found = attacked(
        service,
        model,
        *(_CONNECTS.format(at=each) for each in _SYSTEM_SOCKETS),
        f"systemctl start {mark}.service",
        f"systemd-run bash -c '{sleeper(mark)}'",
        f"echo 1 > /sys/fs/cgroup{group}/cgroup.kill",
        f"echo 1 > /sys/fs/cgroup{group}/cgroup.freeze",
        "mkdir ~/c; mount -t cgroup2 none ~/c",
        "unshare --user --map-root-user true",
    )
    assert len(found) == 9
    assert "status 0" not in found
    assert named(mark) == set()
    assert service.status()["pid"] == pid


def test_h1_h3_the_machines_service_cannot_be_left(installed: Installed, model: FakeModel) -> None:
    attack_on_the_machine(installed, model, int(installed.shown("MainPID")))
    assert "the supervisor's own" in installed.status()["cell"]


def test_h1_h3_a_service_of_root_cannot_be_left(roots_own: RootsOwn, model: FakeModel) -> None:
    attack_on_the_machine(roots_own, model, roots_own.status()["pid"])
    assert "which is not the supervisor's" in roots_own.status()["cell"]


@pytest.mark.parametrize("whose", ["installed", "roots_own"])
def test_h10_a_fork_bomb_is_bounded_under_systemd(
    whose: str, request: pytest.FixtureRequest, model: FakeModel
) -> None:
    """By the cgroup of the cell where that controller can be had, else by its user namespace."""
    service: Installed = request.getfixturevalue(whose)
    service.say("bomb", shell(FORK_BOMB))
    worker = worker_of(service, "bomb")
    until((service.places.workspaces / "bomb" / "refused").exists)
    assert 1 < count_below(service.box, worker) <= _PROCESSES_MAX
    assert "You said: hello" in service.ctl("send", "other", "hello")
    service.interrupt("bomb")
    assert service.listen("bomb").ending("bomb/1").fields["killed"]["all_dead"]
    assert count_below(service.box, worker) == 0


def count_below(box: Box, pid: int) -> int:
    """Processes in the pid namespace of a cell, whose first process this is; pids are those of the box."""
    same = 'for p in /proc/[0-9]*; do [ "$(readlink $p/ns/pid)" = "$1" ] && echo; done | wc -l'
    space = box.try_to("readlink", f"/proc/{pid}/ns/pid").stdout.strip()
    return int(box.run("sh", "-c", same, "sh", space).stdout) if space else 0
