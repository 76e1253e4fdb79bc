"""Coming and going: what install and uninstall leave, for the machine and for a user."""

from pathlib import Path

from ipc.places import Places
from tests.fake_model import FakeModel
from tests.house_rules import ROOT
from tests.service import settings_for
from tests.systemd.box import Box
from tests.systemd.installed import UNIT, Installed


def test_uninstall_leaves_the_data_and_says_where(installed: Installed, model: FakeModel) -> None:
    installed.ctl("send", "kept", "remember this")
    said = installed.ctl("uninstall", "--system")
    assert "/var/lib/hermes-supervisor" in said
    assert "/etc/hermes-supervisor" in said
    look = "ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants /etc/sysusers.d 2>/dev/null"
    found = installed.box.try_to("sh", "-c", look).stdout.split()
    # The drop-in was not written by install, so it is not for uninstall to remove.
    assert [name for name in found if "hermes" in name] == [f"{UNIT}.d"]
    assert [pids for pids in installed.cgroups().values() if pids] == []
    assert installed.hermesctl("uninstall", "--system").returncode == 5
    installed.ctl("install", "--system")
    assert installed.show("turns", session="kept")[0]["state"] == "done"


def test_a_user_has_a_service_of_ones_own(box: Box, model: FakeModel) -> None:
    """In the box the user is root, whose own service it is while the machine has none."""
    box.run("systemctl", "start", "user@0.service")
    home = Path("~root").expanduser()
    state = home / ".local" / "state" / "hermes-supervisor"
    places = Places(home / ".config" / "hermes-supervisor", state, Path("/run/user/0/hermes-supervisor"))
    yours = Installed(box, places, "user", HOME=str(home), XDG_RUNTIME_DIR="/run/user/0")
    yours.hermesctl("uninstall", "--system")
    yours.set(settings_for(model, workers="count = 1"))
    yours.ctl("start")
    beside = yours.hermesctl("install", "--user")
    assert beside.returncode == 75
    assert "hermesctl stop" in beside.stderr
    yours.ctl("stop")
    said = yours.ctl("install", "--user")
    assert "loginctl enable-linger" in said
    assert "You said: hello" in yours.ctl("send", "mine", "hello")
    killed = yours.signal("KILL")
    assert yours.back(killed) != killed
    assert "of the user, active (running), enabled, restarted 1 times" in yours.ctl("status")
    assert "service.ready" in yours.ctl("logs")
    assert yours.cgroups()
    assert str(state) in yours.ctl("uninstall", "--user")
    assert not box.outside(home / ".config/systemd/user" / UNIT).exists()
    assert box.outside(places.journal).exists()
    assert str(ROOT) not in box.run("ps", "-eo", "args").stdout.replace(str(ROOT / "tests"), "")
