"""The service under a real systemd: it comes back, it stops in time, and it leaves nothing behind."""

import os
import time

from ipc import time_budgets
from tests.acceptance.sight import named, shell, sleeper
from tests.fake_model import FakeModel
from tests.service import ENDINGS
from tests.systemd.conftest import KEY
from tests.systemd.installed import UNIT, Installed
from tests.waiting import until

STUBBORN = """
trap '' TERM INT HUP QUIT USR1
(setsid bash -c 'trap "" TERM HUP INT; while :; do {sleeper}; done' &)
while :; do {sleeper}; done
"""


def a_mark() -> str:
    return f"box-{os.urandom(6).hex()}"


def test_a_turn_is_answered_and_systemd_says_how_it_stands(installed: Installed, model: FakeModel) -> None:
    assert "You said: hello" in installed.ctl("send", "first", "hello")
    assert installed.shown("ActiveState") == "active"
    until(lambda: "sessions live" in installed.shown("StatusText"))
    assert "turn.done" in installed.ctl("logs", "--lines", "200")
    status = installed.ctl("status")
    assert "hermes-supervisor.service of the machine, active (running), enabled" in status
    assert installed.ctl("start").startswith("already running")


def test_e8_a_killed_supervisor_is_back_in_seconds_and_its_turn_is_answered_once(
    installed: Installed, model: FakeModel
) -> None:
    session = a_mark()
    installed.say(session, "[[slow interval=0.05 count=60 times=1]] go")
    listener = installed.listen(session)
    listener.until(lambda: "word3" in listener.words)
    killed = installed.signal("KILL")
    assert installed.back(killed) != killed
    again = installed.listen(session)
    assert again.ending(f"{session}/1").type == "turn.done"
    assert len(again.of_type(*ENDINGS)) == 1
    assert len(again.of_type("attempt.lost")) == 1
    assert len(model.requests()) == 2


def test_e8_a_supervisor_that_stands_still_is_restarted_by_the_watchdog(installed: Installed) -> None:
    stopped = installed.signal("STOP")
    assert installed.back(stopped) != stopped
    log = installed.ctl("logs", "--lines", "500")
    assert "Watchdog timeout" in log
    # The signal that ended it left word of where it stood.
    assert "Fatal Python error: Aborted" in log
    assert "You said: still there?" in installed.ctl("send", a_mark(), "still there?")


def test_e8_e1_a_stop_keeps_its_budget_and_leaves_nothing_in_the_cgroup(
    installed: Installed, model: FakeModel
) -> None:
    mark = a_mark()
    for session in (f"{mark}-1", f"{mark}-2"):
        installed.say(session, shell(STUBBORN.format(sleeper=f"(exec -a {mark} sleep 300)")))
    until(lambda: len(named(mark)) >= 4)
    began = time.monotonic()
    told = installed.ctl("stop")
    assert time.monotonic() - began < time_budgets.STOP_PATIENCE_SECONDS
    assert told.startswith("stopped by systemd, pid ")
    assert named(mark) == set()
    assert [pids for pids in installed.cgroups().values() if pids] == []
    assert (installed.shown("ActiveState"), installed.shown("Result")) == ("inactive", "success")
    gone = installed.hermesctl("status")
    assert gone.returncode == 69
    assert "inactive" in gone.stderr
    assert installed.ctl("start").startswith("started by systemd, pid ")
    assert "You said: good morning" in installed.ctl("send", a_mark(), "good morning")


def test_a_restart_in_place_is_no_restart_for_systemd_and_keeps_the_turn(
    installed: Installed, model: FakeModel
) -> None:
    session, pid, restarts = a_mark(), installed.shown("MainPID"), installed.shown("NRestarts")
    installed.say(session, "[[slow interval=0.05 count=100000]] go")
    listener = installed.listen(session)
    listener.until(lambda: "word3 " in listener.words)
    told = installed.ctl("restart", "--keep-turns")
    assert told.startswith(f"restarted in place, pid {pid}, ")
    assert "1 running turn was kept" in told
    again = installed.listen(session)
    again.until(lambda: len(again.words) > len(listener.words))
    assert (installed.shown("MainPID"), installed.shown("NRestarts")) == (pid, restarts)
    installed.interrupt(session)
    again.ending(f"{session}/1")
    assert again.of_type("attempt.lost") == []
    assert len(model.requests()) == 1
    # The watchdog is told by the next image too.
    until(lambda: "sessions live" in installed.shown("StatusText"))


def test_a_reload_through_systemd_reads_the_settings_again(installed: Installed) -> None:
    installed.set(installed.settings.replace("[workers]", "[workers]\nspares = 2"))
    try:
        installed.systemctl("reload", UNIT)
        until(lambda: "settings.changed" in installed.ctl("logs", "--lines", "100"))
        assert installed.shown("ActiveState") == "active"
    finally:
        installed.set(installed.settings)
        installed.systemctl("reload", UNIT)


def test_every_cell_has_a_leaf_of_the_delegated_cgroup_and_takes_it_along(
    installed: Installed, model: FakeModel
) -> None:
    session = mark = a_mark()
    installed.say(session, shell(f"({sleeper(mark)} &) ; {sleeper(mark)}"))
    until(lambda: len(named(mark)) == 2)
    pids = {folder.name: found for folder, found in installed.cgroups().items() if found}
    assert installed.shown("MainPID") in pids.pop("supervisor")
    busy = [name for name, found in pids.items() if len(found) >= 3]
    assert len(busy) == 1, "the worker, its shell and what that has started"
    assert all(name.startswith("hermes-worker-") for name in pids)
    installed.interrupt(session)
    installed.listen(session).ending(f"{session}/1")
    until(lambda: busy[0] not in {folder.name for folder in installed.cgroups()})


def test_cells_are_what_status_says_and_use_the_delegated_cgroup(
    installed: Installed, model: FakeModel
) -> None:
    """The best cell first, then the one that needs the delegation, in the same unit."""
    assert installed.status()["cell"].startswith("namespaces of its own")
    installed.set(installed.settings.replace("[workers]", '[workers]\ncell = "cgroup"'))
    try:
        assert installed.ctl("restart").startswith("restarted by systemd, pid ")
        assert installed.status()["cell"].startswith("a cgroup of its own")
        session = mark = a_mark()
        installed.say(session, shell(f"({sleeper(mark)} &) ; {sleeper(mark)}"))
        until(lambda: len(named(mark)) == 2)
        pids = {folder.name: found for folder, found in installed.cgroups().items() if found}
        assert installed.shown("MainPID") in pids.pop("supervisor")
        assert pids
        assert all(name.startswith("hermes-worker-") for name in pids)
        installed.interrupt(session)
        killed = installed.listen(session).ending(f"{session}/1").fields["killed"]
        assert (killed["how"], killed["all_dead"]) == ("cgroup", True)
        assert named(mark) == set()
    finally:
        installed.set(installed.settings)
        installed.ctl("restart")


def test_keys_come_from_systemd_and_no_worker_can_read_them(installed: Installed, model: FakeModel) -> None:
    looking = "cat /run/credentials/*/* /etc/hermes-supervisor/keys/*; env; ls /var/lib/hermes-supervisor"
    installed.ctl("send", a_mark(), shell(looking))
    first, second = model.requests()
    assert first.key == second.key == KEY
    result = str(second.messages[-1]["content"])
    assert "PATH=" in result
    assert KEY not in result
    assert "CREDENTIALS" not in result
    assert "journal.db" not in result


def test_a_fault_in_the_settings_is_told_once_and_not_tried_again(installed: Installed) -> None:
    installed.set("[workers]\nper_cpus = 2\n")
    try:
        refused = installed.hermesctl("restart")
        assert refused.returncode == 78
        assert "per_cpus" in refused.stderr
        assert installed.shown("ActiveState") == "failed"
    finally:
        installed.set(installed.settings)
        installed.ctl("start")
