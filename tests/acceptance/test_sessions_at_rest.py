"""Sessions at rest cost the supervisor next to nothing: they are in the journal, not in its memory."""

from pathlib import Path

from bench.pretend import pretend_service
from bench.sessions import Host
from ipc.sockets import Wire

SESSIONS = 600
# Far above what is seen, and far below what even an empty session would take if it stayed.
BYTES_EACH_MAX = 16 * 1024


def test_a_session_at_rest_leaves_memory(tmp_path: Path) -> None:
    wire = Wire()
    with pretend_service(tmp_path / "home", 1, spares=1) as (places, pid):
        host = Host(wire, places, pid)
        for _ in range(SESSIONS // 3):
            host.send()  # what grows once is not what grows with every session
        before = host.memory_bytes()
        for _ in range(SESSIONS):
            host.send()
        grown = host.memory_bytes() - before
        (row,) = host.look("status")
        wire.close()
    assert row["sessions_live"] == 0
    assert row["turns_ended"] == SESSIONS + SESSIONS // 3
    assert grown / SESSIONS < BYTES_EACH_MAX, f"{grown} bytes for {SESSIONS} sessions"
