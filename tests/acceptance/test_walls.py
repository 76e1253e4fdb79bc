"""Attacks from a turn of the real service on what its user has running: as root and as an ordinary user."""

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.sight import named, shell, sleeper, worker_of
from tests.acceptance.users import ServiceOf, folder_of, reaches, sockets_of
from tests.fake_model import FakeModel
from tests.other_user import NOBODY
from tests.service import Service, settings_for
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run the service as different users")
_USERS = {"root": pwd.getpwuid(0), "an ordinary user": NOBODY}
_ATTACK = """python3 - <<'END'
import ctypes, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(act):
    try:
        return ["did", str(act())]
    except OSError as error:
        return ["refused", error.strerror]
def connected(address):
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(address.replace("@", "\\0"))
def called(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def wrote(path):
    with open(path, "w") as file:
        file.write("1")
asked = json.loads(ASKED)
print("answers:", json.dumps({name: tried(lambda: eval(text)) for name, text in asked.items()}))
END
"""


@pytest.fixture(params=_USERS)
def account(request: pytest.FixtureRequest) -> pwd.struct_passwd:
    return _USERS[request.param]


@pytest.fixture
def service(account: pwd.struct_passwd, model: FakeModel) -> Iterator[Service]:
    with folder_of(account) as folder:
        settings = settings_for(model, workers="count = 1")
        with ServiceOf(account, folder / "home", settings) as service:
            yield service


def answers(service: Service, model: FakeModel, **asked: str) -> dict[str, list[str]]:
    """What came of each expression, tried by a command of a turn."""
    before = len(model.requests())
    service.say("attacker", shell(_ATTACK.replace("ASKED", repr(json.dumps(asked)))))
    assert service.listen("attacker").ending("attacker/1").type == "turn.done"
    told = str(model.requests()[before + 1].messages[-1]["content"])
    found: dict[str, list[str]] = json.loads(told.partition("answers: ")[2].splitlines()[0])
    return found


def test_h2_no_socket_of_the_same_user_can_be_reached(
    service: Service, account: pwd.struct_passwd, model: FakeModel
) -> None:
    with folder_of(account) as folder, sockets_of(account, folder) as sockets:
        assert all(reaches(address) for address in sockets.values())
        found = answers(service, model, **{name: f"connected({at!r})" for name, at in sockets.items()})
        gone, forbidden = "No such file or directory", "Operation not permitted"
        expected = {name: forbidden if at.startswith("@") else gone for name, at in sockets.items()}
        assert {name: answer for name, (_, answer) in found.items()} == expected


def test_h3_neither_a_namespace_nor_a_mount_nor_a_cgroup_can_be_had(
    service: Service, model: FakeModel
) -> None:
    assert service.process is not None
    memberships = Path(f"/proc/{service.process.pid}/cgroup").read_text().splitlines()
    own = next((line[3:] for line in memberships if line.startswith("0::")), "/")
    kills = {
        f"kill {top}": f"wrote({top + own.rstrip('/') + '/cgroup.kill'!r})"
        for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
    }
    found = answers(
        service,
        model,
        **kills,
        user="called('unshare', 0x10000000)",
        mounts="called('unshare', 0x20000)",
        cgroups="called('unshare', 0x2000000)",
        mount="called('mount', b'none', b'/tmp', b'cgroup2', 0, None)",
        new_mount="called('syscall', 430, b'cgroup2', 0)",
        freeze=f"os.kill({service.process.pid}, 19)",
    )
    assert {answer[0] for answer in found.values()} == {"refused"}, found
    assert service.status()["state"] != "stuck"


def test_h1_what_a_turn_starts_ends_with_it_however_it_hides(service: Service, model: FakeModel) -> None:
    mark = f"hidden-{os.urandom(6).hex()}"
    service.say("demo", shell(f"(setsid bash -c '({sleeper(mark)} &)' &); {sleeper(mark)}"))
    worker_of(service, "demo")
    until(lambda: len(named(mark)) == 2)
    service.interrupt("demo")
    ending = service.listen("demo").ending("demo/1")
    assert ending.fields["killed"]["all_dead"]
    assert named(mark) == set()
