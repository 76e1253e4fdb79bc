"""Folders that are swapped under a running service: by an agent they cannot be, by others it is noticed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Accepted, Care, Done, HandOver, Reload, Submit, Table
from tests.acceptance.sight import shell, worker_of
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until

# A socket below a path of this length is somewhere else: the service can be asked when its home is swapped.
_LONG = "a-home-whose-name-is-so-long-that-no-socket-can-have-a-path-below-it-and-so-has-none"
_PLANTED = '[model]\nbase_url = "http://127.0.0.1:9/v1"\nname = "evil"\n'
# What an agent tries: to rename each folder on the way, and to put its own in that place.
_ATTACK = """python3 - <<'END'
import os
for folder in {folders!r}:
    try:
        os.rename(folder, folder + ".was")
        os.makedirs({target!r}, exist_ok=True)
        open({target!r} + "/" + {name!r}, "w").write("planted")
        print("SWAPPED", folder)
    except OSError as error:
        print("refused:", error.strerror)
END
"""


@pytest.fixture
def apart(tmp_path: Path, model: FakeModel) -> Iterator[Callable[..., Service]]:
    """A service whose home lies two folders deep, with its sockets elsewhere."""
    made: list[Service] = []

    def make(**tables: str) -> Service:
        home = tmp_path / "above" / _LONG
        home.parent.mkdir()
        service = Service(home, settings_for(model, **({"workers": "count = 1"} | tables)))
        assert not service.places.runtime.is_relative_to(home)
        made.append(service)
        service.start()
        return service

    yield make
    for service in made:
        service.__exit__(None, None, None)


def refused(service: Service, request: Reload | HandOver | Care | Submit) -> CommandError:
    with pytest.raises(CommandError) as error:
        service.client().ask(request, Accepted)
    return error.value


def tried(service: Service, model: FakeModel, session: str, folders: list[Path], target: Path) -> str:
    """What became of an agent's attempt to plant a file at `target`, a file's path."""
    asked = len(model.requests())
    names = [str(folder) for folder in folders]
    command = _ATTACK.format(folders=names, target=str(target.parent), name=target.name)
    service.say(session, shell(command))
    assert service.listen(session).ending(f"{session}/1").type == "turn.done"
    return str(model.requests()[asked + 1].messages[-1]["content"])


@pytest.mark.parametrize("level", ["workspace", "home", "host"])
def test_h6_an_agent_cannot_rename_what_leads_to_the_settings(
    apart: Callable[..., Service], model: FakeModel, tmp_path: Path, level: str
) -> None:
    rules = {"agents.default": 'otherwise = "allow"'}
    service = apart(sandbox=f'level = "{level}"\nwrite = ["{tmp_path}"]', **rules)
    above = service.home.parent
    told = tried(service, model, "settings", [service.home, above, tmp_path], service.home / "hermes.toml")
    assert "refused" in told
    assert "SWAPPED" not in told
    assert "planted" not in (service.home / "hermes.toml").read_text()
    assert not above.with_name("above.was").exists()
    # What lies beside is the agent's own, as the settings say.
    beside = tried(service, model, "beside", [], tmp_path / "mine")
    assert "Error" not in beside


@pytest.mark.parametrize("how", ["replaced", "linked", "opened"])
def test_h6_a_swapped_folder_is_named_and_not_followed(
    apart: Callable[..., Service], model: FakeModel, how: str
) -> None:
    """Another process of the user does it: it may rename whatever it likes."""
    service = apart(workers="count = 2")
    service.say("kept", shell("sleep 300"))
    listener = service.listen("kept")
    listener.until(lambda: listener.of_type("tool.started"))
    worker = worker_of(service, "kept")
    above = service.home.parent
    was = above.with_name("was")
    if how == "opened":
        service.home.chmod(0o777)
    else:
        above.rename(was)
        other = above if how == "replaced" else above.with_name("elsewhere")
        (other / _LONG).mkdir(parents=True, mode=0o700)
        (other / _LONG / "hermes.toml").write_text(_PLANTED)
        if how == "linked":
            above.symlink_to(other)
    fault = {
        "replaced": "is another folder than at the start",
        "linked": "leads to",
        "opened": "has the mode 777",
    }
    for request in (Reload(), HandOver(), Care("stats")):
        error = refused(service, request)
        assert fault[how] in error.fault
        assert str(service.home) in error.fault
        assert error.hint
    until(lambda: service.status()["state"] == "stuck")
    assert fault[how] in refused(service, Submit("new", "hello", "k1")).fault
    (hint, *_) = service.status()["hints"]
    assert fault[how] in hint
    assert "stop and start the service" in hint
    if how != "linked":  # `--home` with a link in it names the folder behind the link, where nothing runs
        assert fault[how] in service.hermesctl("doctor").stdout.replace("\n" + " " * 23, " ")
    assert "evil" not in str(service.status()["model"])
    # Nothing was made in the other folder, and what runs goes on.
    if how != "opened":
        assert {path.name for path in (other / _LONG).iterdir()} == {"hermes.toml"}
    assert worker_of(service, "kept") == worker
    # Put back, all is as before.
    if how == "opened":
        service.home.chmod(0o700)
    else:
        above.unlink() if how == "linked" else above.rename(above.with_name("aside"))
        was.rename(above)
    until(lambda: service.status()["state"] == "ready")
    service.client().ask(Reload(), Table)
    service.say("new", "hello")
    assert service.listen("new").ending("new/1").type == "turn.done"
    assert "folder.replaced" in service.log()


def test_h6_a_workspace_is_not_made_in_a_folder_that_has_taken_the_place_of_the_first(
    apart: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    service = apart(turns="attempts_max = 1")
    service.places.workspaces.rename(tmp_path / "was")
    service.places.workspaces.mkdir(mode=0o700)
    service.say("demo", "hello")
    ending = service.listen("demo").ending("demo/1")
    assert ending.type == "turn.failed"
    assert f"{service.places.workspaces} is another folder than at the start" in ending.fields["error"]
    assert list(service.places.workspaces.iterdir()) == []


def test_h6_no_process_is_started_by_way_of_a_folder_that_was_swapped(
    apart: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    service = apart()
    until(lambda: all(row["state"] == "idle" for row in service.show("workers")))
    logs = service.places.logs
    logs.rename(tmp_path / "was")
    logs.mkdir(mode=0o700)
    for row in service.show("workers"):
        os.kill(row["pid"], 9)
    until(lambda: any("another folder" in row["words"] for row in service.show("workers")))
    assert list(logs.iterdir()) == []
    logs.rmdir()
    (tmp_path / "was").rename(logs)
    service.say("demo", "hello")
    assert service.listen("demo").ending("demo/1").type == "turn.done"


def test_h6_the_next_image_of_a_restart_in_place_compares_what_the_first_has_taken(
    apart: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    service = apart()
    client = service.client()
    client.ask(HandOver(), Done, 60)
    until(client.is_lost)
    until(service.answers, 60)
    service.places.clips.rename(tmp_path / "was")
    service.places.clips.mkdir(mode=0o700)
    assert "is another folder than at the start" in refused(service, HandOver()).fault
