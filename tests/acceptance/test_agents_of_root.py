"""A supervisor of root runs agents as a user of their own: they own their workspace and are counted."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.processes.agent_user import choose
from tests.acceptance.sight import FORK_BOMB, descendants, shell, worker_of
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="this is about a supervisor of root")
_PROCESSES_MAX = 40


def ran(service: Service, model: FakeModel, turn: str, command: str) -> str:
    """What a command in the next turn of a session has written."""
    session = turn.rpartition("/")[0]
    asked = len(model.requests())
    service.say(session, shell(command))
    assert service.listen(session).ending(turn).type == "turn.done"
    return str(model.requests()[asked + 1].messages[-1]["content"])


def uid_of(service: Service) -> int:
    user = choose(service.places.state, "auto").other
    assert user is not None
    return user.uid


def test_h10_a_fork_bomb_is_bounded_and_another_session_answers_meanwhile(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers=f"count = 2\nprocesses_max = {_PROCESSES_MAX}")
    service.say("bomb", shell(FORK_BOMB))
    worker = worker_of(service, "bomb")
    until((service.places.workspaces / "bomb" / "refused").exists)
    # Threads count too, and the worker has some.
    assert _PROCESSES_MAX // 2 < len(descendants(worker)) <= _PROCESSES_MAX
    assert "all well" in ran(service, model, "other/1", "echo all well")
    assert len(descendants(worker)) <= _PROCESSES_MAX
    service.interrupt("bomb")
    ending = service.listen("bomb").ending("bomb/1")
    assert ending.type == "turn.interrupted"
    assert ending.fields["killed"]["all_dead"]
    assert not Path("/proc", str(worker)).exists()


def test_an_agent_owns_its_workspace_and_takes_over_an_older_one(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1")
    uid = uid_of(service)
    assert str(uid) in ran(service, model, "demo/1", "id -u; echo mine > ~/file; ln -s /etc/hostname ~/link")
    workspace = service.places.workspaces / "demo"
    assert {path.lstat().st_uid for path in (workspace, *workspace.iterdir())} == {uid}
    service.stop()
    # As it was left while agents of root were root.
    hostname = Path("/etc/hostname").stat().st_uid
    for path in (workspace, *workspace.iterdir()):
        os.chown(path, 0, 0, follow_symlinks=False)
    service.start()
    assert "mine" in ran(service, model, "demo/2", "cat ~/file; echo more >> ~/file")
    assert {path.lstat().st_uid for path in (workspace, *workspace.iterdir())} == {uid}
    assert Path("/etc/hostname").stat().st_uid == hostname
    # The supervisor can remove it.
    shutil.rmtree(workspace)


def test_status_and_doctor_say_as_whom_agents_run_and_what_they_cannot_write(
    make_service: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "roots").mkdir()
    service = make_service(workers="count = 1", sandbox=f'write = ["{tmp_path}/roots"]')
    uid = uid_of(service)
    cell = service.status()["cell"]
    assert f"agents run as uid {uid}, which is not the supervisor's" in cell
    assert f"[sandbox] write names {tmp_path}/roots, which uid {uid} may not write to" in cell
    assert f"agents run as uid {uid}" in service.hermesctl("doctor").stdout


@pytest.mark.parametrize("level", ["home", "host"])
def test_what_only_root_may_read_stays_closed_at_every_level(
    make_service: Callable[..., Service], model: FakeModel, level: str
) -> None:
    rules = {"agents.default": 'otherwise = "allow"'}
    service = make_service(workers="count = 1", sandbox=f'level = "{level}"', **rules)
    tried = ran(service, model, "demo/1", "cat /etc/shadow; ls ~root; echo $HOME; touch ~/mine && echo made")
    assert "root:" not in tried
    assert "/workspace" in tried
    assert "made" in tried
