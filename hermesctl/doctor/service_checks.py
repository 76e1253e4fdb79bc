"""The service itself: whether it runs well, who holds the journal, what an earlier run left behind."""

import json
import os
import subprocess
from pathlib import Path

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good
from hermesctl.errors import CommandError
from hermesctl.render import one_line, plain
from ipc import interpreter

# Checking every page of a large journal takes longer than a person waits for a doctor.
_CHECK_SECONDS = 20.0


def service(around: Surroundings) -> Finding:
    status = around.status
    if status is None:
        return care("service", "does not run", "hermesctl start")
    state = one_line(status.get("state"))
    fact = f"{state}, pid {status.get('pid')}, version {one_line(status.get('version'))}"
    hints = [one_line(hint) for hint in status.get("hints") or ()]
    if state == "stuck":
        return bad("service", fact, hints[0] if hints else "hermesctl logs")
    return care("service", fact, hints[0]) if hints else good("service", fact)


def version(around: Surroundings) -> Finding | None:
    """An upgrade takes effect at the next start."""
    from hermesctl.commands.version import installed_version

    if around.status is None or around.status.get("version") == installed_version():
        return None
    fact = f"{one_line(around.status.get('version'))} runs, {installed_version()} is installed"
    return care("version", fact, "hermesctl stop, then hermesctl start")


def lock(around: Surroundings) -> Finding:
    holder = _holder(around.places.lock)
    if holder is None:
        return (
            good("lock", "free") if around.status is None else care("lock", "no process holds it", "restart")
        )
    if around.status is None:
        fact = f"pid {holder} has the journal and does not answer"
        return bad(
            "lock", fact, f"wait if it is starting or stopping; else kill -9 {holder}: nothing is lost"
        )
    return good("lock", f"held by the service, pid {holder}")


def journal(around: Surroundings) -> Finding:
    url = around.checkup.get("journal_url")
    if url and around.status is None:
        return good("journal", f"in the database {one_line(url)}, which the running service looks at")
    if not url and not around.places.journal.exists():
        return good("journal", "not made yet")
    try:
        found = _checked_online(around) if around.status is not None else _checked_alone(around)
    except (CommandError, subprocess.TimeoutExpired):
        return care("journal", f"the check takes longer than {_CHECK_SECONDS:g} s", "hermesctl journal check")
    if found is None:
        return care("journal", "could not be looked at", "hermesctl journal check")
    if not found["ok"]:
        hint = "hermesctl journal backup FILE, hermesctl stop, hermesctl journal check --repair"
        if url:
            hint = "restore the database from its backup"
        return bad("journal", f"damaged: {plain(found['findings'])}", hint)
    return good("journal", f"sound, {one_line(url) if url else around.places.journal}")


def hosts(around: Surroundings) -> Finding | None:
    """The hosts that share a journal on a server, as this one sees them."""
    if not around.checkup.get("journal_url") or around.status is None:
        return None
    from hermesctl.show_rows import read
    from ipc.messages import Show

    try:
        rows = read(around.places, Show("hosts"))
    except CommandError as error:
        return care("hosts", error.fault, error.hint)
    names = ", ".join(f"{one_line(row['name'])} {one_line(row['state'])}" for row in rows)
    if any(row["state"] == "overdue" for row in rows):
        return care("hosts", names, "an overdue host does not renew its lease: look at it and at its network")
    if len({row["version"] for row in rows}) > 1:
        versions = ", ".join(f"{one_line(row['name'])} {one_line(row['version'])}" for row in rows)
        return care("hosts", f"of several versions: {versions}", "upgrade the others too")
    return good("hosts", names)


def leftovers(around: Surroundings) -> Finding:
    """The runtime folder keeps a record of processes that must not outlive the service."""
    if around.status is not None:
        return good("leftovers", "the service ended them when it started")
    alive = [pid for pid, started in _recorded(around.places.processes) if _started(pid) == started]
    if alive:
        pids = " ".join(map(str, alive))
        return bad(
            "leftovers", f"processes of an earlier life still run: {pids}", "hermesctl start ends them"
        )
    return good("leftovers", "nothing of an earlier life runs")


def _checked_online(around: Surroundings) -> dict[str, object] | None:
    from hermesctl.client import Client
    from ipc.messages import Care, Table

    client = Client(around.places)
    try:
        rows = client.ask(Care("check"), Table, _CHECK_SECONDS).rows
    finally:
        client.close()
    return rows[0] if rows else None


def _checked_alone(around: Surroundings) -> dict[str, object] | None:
    done = subprocess.run(
        interpreter.command("supervisor.journal", "check", *around.places.arguments),
        capture_output=True,
        text=True,
        timeout=_CHECK_SECONDS,
        cwd=interpreter.WORKING_DIRECTORY,
        env=interpreter.environment("XDG_*"),
    )
    rows = done.stdout.splitlines()
    return json.loads(rows[0]) if rows else None


def _holder(path: Path) -> int | None:
    """Read from the kernel's list: an attempt to take the lock could make a starting supervisor fail."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if "FLOCK" in fields and fields[-3].rpartition(":")[2] == str(inode):
            return int(fields[fields.index("FLOCK") + 3])
    return None


def _recorded(file: Path) -> list[tuple[int, str]]:
    """Returns (pid, start time) of each, if the record is of this boot and this pid namespace."""
    try:
        where, *lines = file.read_text(errors="replace").splitlines() or [""]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return []
    if where != f"{boot} {os.readlink('/proc/self/ns/pid')}":
        return []
    found = [line.split() for line in lines]
    # Behind the numbers of a worker stands its workspace.
    return [(int(each[0]), each[1]) for each in found if len(each) > 1 and all(map(str.isdecimal, each[:2]))]


def _started(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text[text.rindex(")") + 2 :].split()
    return fields[19] if fields[0] not in "ZX" else ""
