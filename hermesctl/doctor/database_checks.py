"""The database of a journal on a server: the line to it, its clock, its standby, and who else gets in."""

from typing import Any

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good
from hermesctl.render import one_line

# Times of turns and messages come from the hosts; a person compares them.
_SKEW_SECONDS_MAX = 1.0
_CHECKED = ("verify-ca", "verify-full")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def database(around: Surroundings) -> Finding | None:
    """Whether it answers, and whether others can read or change what travels there."""
    found = around.checkup.get("database")
    if not found:
        return None
    if found.get("fault"):
        return bad("database", found["fault"], found["hint"])
    where = f"PostgreSQL {found['version'] // 10_000} at {one_line(found['host'])}"
    fact = f"{where}, {found['way_seconds'] * 1000:.1f} ms away"
    if found["is_socket"] or found["host"] in _LOOPBACK:
        return good("database", f"{fact}, on this host")
    if not found["is_encrypted"]:
        hint = "add sslmode=verify-full to [journal] url, and let the server have a certificate"
        return bad("database", f"{fact}, and the line is not encrypted", hint)
    if found["sslmode"] not in _CHECKED:
        fact = f"{fact}, encrypted, but any server could answer in its place"
        return care("database", fact, "add sslmode=verify-full and sslrootcert=FILE to [journal] url")
    return good("database", f"{fact}, encrypted, its certificate is checked")


def database_clock(around: Surroundings) -> Finding | None:
    found = _answered(around)
    if found is None:
        return None
    skew = float(found["skew_seconds"])
    # It cannot be known better than half of the way there and back.
    if abs(skew) <= _SKEW_SECONDS_MAX + found["way_seconds"] / 2:
        return good("database clock", f"{abs(skew):.3f} s from this host's")
    side = "ahead of" if skew > 0 else "behind"
    fact = f"{abs(skew):.1f} s {side} this host's: times of several hosts do not fit together"
    return care("database clock", fact, "let both synchronise their clocks (timedatectl)")


def standby(around: Surroundings) -> Finding | None:
    """Without one, a message that was accepted is as safe as the disk of the one server."""
    found = _answered(around)
    if found is None:
        return None
    names = one_line(found["standby_names"])
    if not names:
        fact = "none is synchronous: what was accepted is lost if the server's disk is"
        return care("standby", fact, "set up a replica, and name it in synchronous_standby_names")
    if found["synchronous"] == 0:
        fact = f"synchronous_standby_names = {names}, and none of them is connected: commits wait"
        return bad("standby", fact, "start the replica, or change synchronous_standby_names")
    return good("standby", f"synchronous: {names}")


def database_access(around: Surroundings) -> Finding | None:
    """Whether an agent gets in: cells hide sockets and password files, not the network."""
    found = _answered(around)
    if found is None:
        return None
    if found["open"]:
        fact = f"{', '.join(found['open'])} asks no password: agents that have a network get in"
        return bad(
            "database access", fact, "let pg_hba.conf ask for one (scram-sha-256), and set password_file"
        )
    kind = str((around.checkup.get("cell") or {}).get("kind"))
    if kind != "pidns":
        fact = f"a cell of the kind {kind} has no view of its own: agents reach what the service reaches"
        return care("database access", fact, "hermesctl doctor --isolation shows what is open")
    return good("database access", "cells see neither its socket nor a password")


def _answered(around: Surroundings) -> dict[str, Any] | None:
    found = around.checkup.get("database")
    return found if isinstance(found, dict) and not found.get("fault") else None
