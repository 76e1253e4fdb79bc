"""One worker, one session: what a session leaves is found by that session again and by no other."""

import json
import secrets
import stat
from collections.abc import Callable

import pytest

from supervisor.workers.workspaces import folder_name
from tests.acceptance.sight import shell
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

# Leaves its mark wherever a process can: files, shared memory of both kinds, environments, a daemon.
_LEAVES = """
export TRACE={mark}
for folder in /tmp /var/tmp /dev/shm /run "$HOME" "$PWD"; do
    if [ -w "$folder" ]; then echo {mark} > "$folder/{mark}"; fi
done
python3 -c 'import ctypes; print("memory", ctypes.CDLL(None).shmget({key}, 4096, 0o1600))'
MARK={mark} setsid sleep 4242 > /dev/null 2>&1 < /dev/null &
test -e "$HOME/{mark}" && echo left
"""
# Looks for it in files, names, environments, command lines and shared memory. It has the mark backwards: a
# command line that held it would find itself.
_LOOKS = """python3 - <<'END'
import ctypes, os
mark = "MARK_BACKWARDS"[::-1]
found = []
def look(path):
    try:
        with open(path, "rb") as file:
            if mark.encode() in file.read(1000000):
                found.append(path)
    except OSError:
        pass
for top in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/home", os.environ["HOME"], os.getcwd()):
    for folder, folders, files in os.walk(top):
        found += [os.path.join(folder, name) for name in (*folders, *files) if mark in name]
        for path in (os.path.join(folder, name) for name in files):
            if os.path.isfile(path):
                look(path)
for pid in filter(str.isdigit, os.listdir("/proc")):
    look("/proc/%s/environ" % pid)
    look("/proc/%s/cmdline" % pid)
if ctypes.CDLL(None).shmget({key}, 0, 0) != -1:
    found.append("shared memory")
print("found:", sorted(set(found)) or "nothing")
END
"""


def ran(service: Service, model: FakeModel, turn: str, command: str) -> str:
    """What a command in the next turn of a session has written."""
    session = turn.rpartition("/")[0]
    asked = len(model.requests())
    service.say(session, shell(command), busy="queue")
    ending = service.listen(session).ending(turn, 90)
    assert ending.type == "turn.done", ending.fields
    return str(model.requests()[asked + 1].messages[-1]["content"])


def test_h19_a_session_finds_nothing_of_another_one_that_had_the_same_seat(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    mark, key = f"mark{secrets.token_hex(8)}", secrets.randbelow(2**30) + 1
    assert "left" in ran(service, model, "a/1", _LEAVES.format(mark=mark, key=key))
    looks = _LOOKS.replace("MARK_BACKWARDS", mark[::-1]).replace("{key}", str(key))
    assert "found: nothing" in ran(service, model, "b/1", looks)
    assert [row["session"] for row in service.show("workers")] == ["b"]
    # The first one finds its files again, in another process, and so it does after a restart.
    assert mark in ran(service, model, "a/2", f"cat ~/{mark}")
    service.stop()
    service.start()
    assert mark in ran(service, model, "a/3", f"cat ~/{mark}; ls /tmp")


@pytest.mark.parametrize("count", [1, 2])
def test_h19_the_worker_of_a_session_is_ended_before_another_one_has_its_seat(
    make_service: Callable[..., Service], model: FakeModel, count: int
) -> None:
    service = make_service(workers=f"count = {count}\nspares = 1")
    pids = []
    for number in range(5):
        ran(service, model, f"s{number}/1", "true")
        listener = service.listen(f"s{number}")
        listener.until(lambda: listener.of_type("turn.done"))  # noqa: B023
        pids += [event.fields["pid"] for event in listener.of_type("attempt.opened")]
    assert len(set(pids)) == len(pids) == 5


def test_every_session_has_a_folder_of_its_own_whatever_it_is_called(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 2")
    names = ["telegram:42", "a/b", "..", ".hidden", "über 🚀", "x" * 200]
    for name in names:
        assert "alone" in ran(service, model, f"{name}/1", "ls -A ~ && touch ~/here && echo alone")
    folders = {path.name for path in service.places.workspaces.iterdir()}
    assert folders == {folder_name(name) for name in names}
    for path in service.places.workspaces.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert [each.name for each in path.iterdir()] == ["here"]


def test_agents_with_other_sandboxes_have_workers_of_their_own(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    tables = {
        "agents.open": 'otherwise = "allow"',
        "agents.open.sandbox": 'level = "host"',
        'sessions."o:*"': 'agent = "open"',
    }
    service = make_service(workers="count = 1\nspares = 1", **tables)
    assert "yes" in ran(service, model, "o:1/1", "test -e /proc/self/root/boot -o -e /opt && echo yes")
    assert "/workspace" in ran(service, model, "closed/1", "echo $HOME")
    levels = {row["turn"]: (row["agent"], row["level"]) for row in service.show("turns")}
    assert levels == {"o:1/1": ("open", "host"), "closed/1": ("default", "workspace")}
    assert "sandbox level host" in service.hermesctl("why", "o:1/1").stdout


def test_a_workspace_goes_when_the_journal_forgets_its_session(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    long = "é" * 100
    for name in ("forgotten", "a/b", long):
        assert "made" in ran(
            service, model, f"{name}/1", "mkdir -p ~/deep/er && echo 1 > ~/deep/er/file && echo made"
        )
    stranger = service.places.workspaces / "never-said-anything"
    stranger.mkdir()
    pruned = json.loads(service.hermesctl("journal", "prune", "--keep-bytes", "1KiB", "--json").stdout)
    assert pruned["turns"] == 3
    # The last one has a worker still, which is bound to it; the others are over.
    until(
        lambda: (
            {path.name for path in service.places.workspaces.iterdir()} == {folder_name(long), stranger.name}
        )
    )
    assert "made" in ran(service, model, "forgotten/2", "ls ~/deep 2> /dev/null || echo made anew")
    service.hermesctl("journal", "prune", "--keep-bytes", "1KiB")
    until(lambda: {path.name for path in service.places.workspaces.iterdir()} == {"forgotten", stranger.name})
    assert "workspaces.removed" in service.log()


def test_a_turn_that_outgrows_its_quota_fails_by_name_and_the_next_may_tidy_up(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1\nspares = 0", sandbox='quota = "20MiB"')
    writes = "i=0; while true; do i=$((i+1)); head -c 4000000 /dev/urandom > ~/file$i; sleep 0.2; done"
    service.say("big", shell(writes))
    ending = service.listen("big").ending("big/1", 60)
    assert ending.type == "turn.failed"
    assert "its workspace holds" in ending.fields["error"]
    assert "the quota is 20 MiB" in ending.fields["error"]
    assert "[sandbox] quota" in ending.fields["hint"]
    workspace = service.places.workspaces / "big"
    kept = sorted(path.name for path in workspace.iterdir())
    assert "tidy" in ran(service, model, "big/2", "rm ~/file*; sleep 5; echo tidy")
    assert kept
    assert list(workspace.iterdir()) == []
    assert "workspace.full" in service.log()
