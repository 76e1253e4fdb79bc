"""Where the sandbox gives no network, every process of a tool, a server or a program is under the filter."""

import os
import sys
from collections.abc import Iterator

import pytest

from supervisor.processes.seccomp import tools_filter
from worker.tools import spawn

PROBE = """
import socket
try:
    socket.socket()
    print("open")
except PermissionError:
    print("refused")
"""
LINE = [sys.executable, "-I", "-S", "-c", PROBE]


@pytest.fixture
def restricted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only the thread that starts processes has the filter; it ends with the test."""
    monkeypatch.setattr(spawn, "_program", b"")
    monkeypatch.setattr(spawn, "_filtered", None)
    spawn.restrict(tools_filter())
    assert spawn._filtered is not None
    yield
    spawn._filtered.shutdown()


def of_a_call() -> bytes:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as output:
        process = spawn.start(LINE, given=b"", output=writing, folder="/", environment={})
        os.close(writing)
        told = output.read()
    process.wait()
    return told.strip()


def of_a_server() -> bytes:
    with spawn.start_piped(LINE, environment={}) as process:
        return process.communicate()[0].strip()


@pytest.mark.usefixtures("restricted")
def test_calls_and_servers_of_a_sandbox_without_network_have_none() -> None:
    assert (of_a_call(), of_a_server()) == (b"refused", b"refused")


def test_elsewhere_they_have_it() -> None:
    assert (of_a_call(), of_a_server()) == (b"open", b"open")
