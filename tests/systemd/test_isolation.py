"""The attacks from inside the cells of the machine's service: a user of its own, cgroups delegated to it."""

import json
from typing import Any

from tests.fake_model import FakeModel
from tests.isolation.surroundings import documented
from tests.systemd.installed import Installed


def trial(installed: Installed) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and rows by attack; root asks, as the machine's administrator does."""
    done = installed.hermesctl("doctor", "--isolation", "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    return done.returncode, {row["attack"]: row for row in report["attacks"]}


def open_in(rows: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, row in rows.items() if row["verdict"] == "open"}


def test_h1_to_h11_every_attack_is_held_under_the_unit(installed: Installed, model: FakeModel) -> None:
    code, rows = trial(installed)
    marks = documented("workspace")
    wrong = [row for name, row in rows.items() if name in open_in(rows) and marks[name] == "held"]
    assert (code, wrong) == (0, [])
    # Here systemd runs and hands the key over, and the service has a user of its own.
    held = ["systemd", "keys", "processes", "root"]
    # Where version 1 has the controllers, the kernel cannot limit what lies in version 2.
    controllers = installed.box.run("cat", "/sys/fs/cgroup/cgroup.controllers").stdout.split()
    for name in held + ["memory"] * ("memory" in controllers):
        assert rows[name]["verdict"] == "held", rows[name]
    assert "broken" not in {row["verdict"] for row in rows.values()}


def test_level_host_under_the_unit_opens_no_more_than_the_table_says(installed: Installed) -> None:
    installed.set(installed.settings.replace("[workers]", '[sandbox]\nlevel = "host"\n[workers]'))
    try:
        installed.ctl("restart")
        code, rows = trial(installed)
        allowed = {name for name, mark in documented("host").items() if mark != "held"}
        assert (code, open_in(rows) - allowed) == (0, set())
        # The unit has a /tmp of its own, and its user may not speak to systemd.
        assert {"systemd", "host files"}.isdisjoint(open_in(rows))
    finally:
        installed.set(installed.settings)
        installed.ctl("restart")
