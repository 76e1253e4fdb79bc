"""Whether this host can have a kind of cell, tried with tools of the system instead of our code.

A supervisor also says that it has no cells when its zygote dies at the start. Its word alone skips no test.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NoReturn

import pytest

from supervisor.processes.cells.own_cgroup import own_folder


def skip_where_missing(kind: str, words: str, user: Sequence[str] = ()) -> NoReturn:
    """Skips where the host has no such cell, and fails elsewhere; `words` are those of the supervisor.

    `user` is the beginning of a command by which it runs as the user of the supervisor.
    """
    missing = _missing(kind, user)
    assert missing, f"the host can have cells of the kind {kind}, and the supervisor says: {words}"
    pytest.skip(f"{missing}: {words}")


def _missing(kind: str, user: Sequence[str]) -> str:
    if kind in ("pidns", "auto"):
        as_root = [] if os.geteuid() == 0 and not user else ["--user", "--map-root-user"]
        line = [*user, "unshare", *as_root, "--pid", "--fork", "--mount-proc", "true"]
        if shutil.which("unshare") is None or subprocess.run(line, capture_output=True).returncode:
            return "no pid namespace can be made here"
    if kind == "cgroup":
        folder = own_folder()
        if folder is None or not os.access(folder, os.W_OK):
            return "no cgroup can be made here"
        probe = folder / f"probe-{os.getpid()}"
        try:
            probe.mkdir()
        except OSError as error:
            return f"no cgroup can be made here: {error.strerror}"
        has_kill = (probe / "cgroup.kill").exists()
        probe.rmdir()
        if not has_kill:
            return "this kernel has no cgroup.kill"
    return ""
