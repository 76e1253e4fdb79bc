"""Clips between hosts: in the journal before their message is accepted, a file where they are transcribed."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hermesctl.clip_upload import store
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Retry, Submit
from supervisor.journal.postgres.clip_rows import ClipRows
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.server_rows import ServerRows
from tests.cutting_proxy import CuttingProxy
from tests.hosts.conftest import Make
from tests.hosts.test_asking_elsewhere import running
from tests.hosts.test_notices import prepared
from tests.postgres_cluster import Cluster
from tests.service import Service
from tests.stt_service.sounds import clip
from tests.stt_service.test_remote import server
from tests.waiting import until

DAY = 86400.0


@pytest.fixture
def hearing() -> Iterator[str]:
    """Settings of a host that can hear."""
    with server(200, {"text": " from far away"}) as made:
        yield engine(made.remote["base_url"])


@pytest.fixture
def deaf() -> Iterator[str]:
    """Settings of a host whose STT server takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield engine(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")


def engine(address: str) -> str:
    return f'engine = "openai"\nbase_url = "{address}"\nmodel = "whisper-1"'


def can_hear(service: Service) -> None:
    until(lambda: [row for row in service.show("services") if row["state"] == "ready"])


def submitted(service: Service, session: str) -> Submit:
    return Submit(session, "", os.urandom(8).hex(), clip=store(service.places, str(clip("young_man"))))


def stored(cluster: Cluster, schema: str) -> dict[str, bytes]:
    with psycopg.connect(cluster.url(schema)) as connection:
        return dict(connection.execute("SELECT name, content FROM clips").fetchall())


def test_a_clip_that_is_sent_to_one_host_is_transcribed_by_another(
    make: Make, cluster: Cluster, schema: str, hearing: str
) -> None:
    one, two = make("one", stt=hearing), make("two")
    can_hear(one)
    near = running(one, "demo")
    submit = submitted(two, "demo")
    two.client().ask(submit, Accepted)
    assert stored(cluster, schema) == {submit.clip: clip("young_man").read_bytes()}
    near.until(lambda: near.of_type("transcript.ready"))
    assert near.of_type("transcript.ready")[0].fields["text"] == "from far away"
    made = one.places.clips / submit.clip
    assert made.read_bytes() == clip("young_man").read_bytes()
    assert made.stat().st_mode & 0o777 == 0o600
    assert near.ending("demo/2").type == "turn.done"


def test_a_clip_goes_on_at_the_host_that_takes_its_session_over(make: Make, hearing: str, deaf: str) -> None:
    one, two = make("one", stt=deaf), make("two", stt=hearing)
    can_hear(two)
    submit = submitted(one, "demo")
    one.client().ask(submit, Accepted)
    one.kill()
    far = two.listen("demo")
    assert far.ending("demo/1").type == "turn.done"
    assert far.types().count("transcript.ready") == 1
    assert (two.places.clips / submit.clip).exists()


def test_a_failed_clip_is_retried_at_any_host(make: Make, hearing: str) -> None:
    one = make("one")
    said = one.client().ask(submitted(one, "demo"), Accepted)
    near = one.listen("demo")
    near.until(lambda: near.of_type("transcript.failed"))
    assert one.stop() == 0
    two, three = make("two", stt=hearing), make("three")
    can_hear(two)
    running(two, "demo")
    assert three.client().ask(Retry(said.message, "again"), Accepted)
    far = three.listen("demo")
    far.until(lambda: far.of_type("transcript.ready"))
    with pytest.raises(CommandError, match="not known"):
        three.client().ask(Retry("m_unknown", "again"), Accepted)


def test_without_the_database_no_clip_is_accepted(make: Make, proxy: CuttingProxy) -> None:
    one, two = make("one"), make("two", proxy.port)
    running(one, "demo")
    submit = submitted(two, "demo")
    proxy.is_away = True
    proxy.drop()
    with pytest.raises(CommandError, match="the database does not answer"):
        two.client().ask(submit, Accepted)
    one.interrupt("demo")


def test_a_clip_that_is_nowhere_is_refused_as_by_one_host(make: Make, tmp_path: Path) -> None:
    one = make("one")
    for name, fault in (("absent", "not in the clips folder"), ("../etc", "letters and digits")):
        with pytest.raises(CommandError, match=fault):
            one.client().ask(Submit("demo", "", "key", clip=name), Accepted)
    (one.places.clips / "link").symlink_to(clip("young_man"))
    with pytest.raises(CommandError, match="not a plain file"):
        one.client().ask(Submit("demo", "", "key", clip="link"), Accepted)


def test_a_clip_that_is_too_old_goes_with_its_row(make: Make, cluster: Cluster, schema: str) -> None:
    one = make("one")
    submit = submitted(one, "demo")
    one.client().ask(submit, Accepted)
    near = one.listen("demo")
    near.until(lambda: near.of_type("transcript.failed"))
    assert set(stored(cluster, schema)) == {submit.clip}
    assert one.stop() == 0
    file = one.places.clips / submit.clip
    long_ago = file.stat().st_mtime - 8 * DAY
    os.utime(file, (long_ago, long_ago))
    one.start()
    until(lambda: not file.exists() and not stored(cluster, schema))


def test_rows_are_removed_with_their_clips(cluster: Cluster, schema: str) -> None:
    url = prepared(cluster.url(schema))
    opened = ServerRows(lambda: connect(url, "test"))
    rows = ClipRows(opened)
    for name in ("old", "stray", "fresh", "working", "removed"):
        rows.store(name, name.encode())
        rows.store(name, b"another")
    assert rows.content("old") == b"old", "a clip never changes"
    assert rows.content("absent") is None
    with psycopg.connect(url) as connection:
        for name, state in (("old", "taken"), ("working", "transcribing"), ("removed", "failed")):
            connection.execute(
                """INSERT INTO messages (id, session, key, kind, text, busy, clip, state, seq, at)
                   VALUES (%s, 's', 'k', 'voice', '', 'queue', %s, %s, 1, 1)""",
                (f"m_{name}", name, state),
            )
        connection.execute(
            """UPDATE clips SET stored_at = clock_timestamp() - interval '2 hours' WHERE name = 'stray'"""
        )
        connection.execute(
            """UPDATE clips SET stored_at = clock_timestamp() - interval '8 days'
               WHERE name IN ('old', 'working')"""
        )
    rows.remove(["removed", "working", "absent"])
    rows.prune(7 * DAY, 3600)
    assert set(stored(cluster, schema)) == {"fresh", "working"}
    opened.close()
