"""The service with its journal on a PostgreSQL server: as with a file, and while the server is away."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from hermesctl.errors import CommandError, NotRunning
from ipc.messages import Begin, Done, Retry, Seen, Subscribe, Subscribed
from tests import postgres_cluster
from tests.cutting_proxy import CuttingProxy
from tests.fake_model import FakeModel
from tests.postgres_cluster import Cluster, free_port
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

HOLD = "[[silent]] hold"
SLOW = "[[slow interval=0.1 count=40]]"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that tests stop and start."""
    with postgres_cluster.running(fsync="on") as cluster:
        yield cluster


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url(cluster.new_schema(), cluster.port)


@pytest.fixture
def make(tmp_path: Path, model: FakeModel) -> Iterator[Callable[[str], Service]]:
    made: list[Service] = []

    def make(journal: str) -> Service:
        settings = settings_for(model, workers="count = 2", journal=journal)
        made.append(Service(tmp_path / f"home{len(made)}", settings))
        return made[-1]

    yield make
    for service in made:
        service.__exit__(None, None, None)


def lives(url: str) -> list[tuple[int, bool]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT epoch, gone FROM lives ORDER BY epoch").fetchall()


def exit_status(service: Service) -> int:
    service.launch()
    assert service.process is not None
    return service.process.wait(DEADLINE_SECONDS)


def test_turns_run_and_a_killed_service_goes_on_where_it_was(
    make: Callable[[str], Service], url: str
) -> None:
    service = make(f'url = "{url}"')
    service.start()
    done = service.hermesctl("send", "demo", "hello")
    assert done.returncode == 0, done.stderr
    held = service.say("other", HOLD)
    listener = service.listen("other")
    listener.until(lambda: listener.of_type("attempt.opened"))
    service.kill()
    service.start()
    assert lives(url) == [(1, True), (2, False)]
    again = service.listen("other")
    again.until(lambda: again.of_type("attempt.lost"))
    assert [event.seq for event in again.events] == list(range(1, len(again.events) + 1))
    service.interrupt("other")
    assert again.ending("other/1").type == "turn.interrupted"
    assert [row["session"] for row in service.show("sessions")] == ["other", "demo"]
    assert held.seq == 1
    assert service.stop() == 0
    assert lives(url) == [(1, True), (2, True)]
    assert not [each for each in service.home.glob("journal.db*") if b"hello" in each.read_bytes()]


def test_every_table_and_request_is_answered_without_a_read_in_the_loop(
    make: Callable[[str], Service], url: str
) -> None:
    """A read of the server in the loop raises there; it would be contained, counted, and refused."""
    service = make(f'url = "{url}"')
    service.start()
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    for command in ("sessions", "turns", "workers", "services", "questions", "cursors", "status"):
        done = service.hermesctl(command, "--json")
        assert done.returncode == 0, (command, done.stderr)
    assert f"sound, {url}" in service.hermesctl("doctor").stdout
    assert service.hermesctl("why", "demo/1").returncode == 0
    assert service.client().ask(Seen(session="demo", cursor="bridge", seq=2), Done)
    client = service.client()
    assert client.answer_to(client.post(Subscribe("demo", cursor="bridge")), Subscribed).after == 2
    assert service.show("cursors")[0]["cursor"] == "bridge"
    assert service.show("history", session="demo")[-1]["turn"] == "demo/1"
    assert service.show("turn", id="demo/1")[0]["state"] == "done"
    assert [row["session"] for row in service.show("sessions", words="hello")] == ["demo"]
    assert service.client().ask(Begin("copy", "key", from_session="demo", through_turn=1), Done)
    with pytest.raises(CommandError, match="is done"):
        service.client().ask(Retry("demo/1", "again"), Done)
    with pytest.raises(CommandError, match="not known"):
        service.client().ask(Retry("m_unknown", "again"), Done)
    for act in (("check",), ("stats",), ("prune", "--older", "1d")):
        done = service.hermesctl("journal", *act, "--json")
        assert done.returncode == 0, (act, done.stderr)
    done = service.hermesctl("journal", "backup", str(service.home / "copy.db"))
    assert done.returncode == 5
    assert "pg_dump" in done.stderr
    assert "contained" not in service.log()


def test_h12_a_database_that_is_away_stops_no_interrupt_and_loses_nothing(
    make: Callable[[str], Service], cluster: Cluster, url: str
) -> None:
    service = make(f'url = "{url}"')
    service.start()
    service.say("demo", HOLD)
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    cluster.stop("immediate")
    try:
        done = service.hermesctl("interrupt", "demo", "--json")
        assert done.returncode == 0, done.stderr
        assert '"all_dead": true' in done.stdout or '"all_dead":true' in done.stdout
        until(lambda: "does not answer" in service.hermesctl("send", "late", "hello").stderr)
        # One sentence says that nothing is accepted, and why.
        (hint,) = [each for each in service.status()["hints"] if "the database does not answer" in each]
        assert hint.startswith("nothing is accepted for ")
        refused = service.hermesctl("send", "late", "hello")
        assert refused.returncode == 5
        assert "does not answer" in refused.stderr
    finally:
        cluster.start()
    assert listener.ending("demo/1", 60).type == "turn.interrupted"
    until(lambda: service.hermesctl("send", "late", "hello").returncode == 0)
    events = service.listen("demo")
    events.until(lambda: events.of_type("turn.interrupted"))
    assert events.types().count("turn.interrupted") == 1


def test_e9_status_says_that_the_database_is_away_and_all_that_is_known_without_it(
    make: Callable[[str], Service], cluster: Cluster, url: str
) -> None:
    service = make(f'url = "{url}"')
    service.start()
    assert (service.status()["state"], service.status()["turns_ended"]) == ("ready", 0)
    cluster.stop("immediate")
    try:
        row = service.status()
        assert (row["state"], row["turns_ended"], row["running"], row["seats"]) == ("stuck", None, None, 2)
        (hint,) = [each for each in row["hints"] if "the database does not answer" in each]
        assert hint.startswith("the journal cannot be read: ")
        shown = service.hermesctl("status")
        assert shown.returncode == 0, shown.stderr
        assert "turns     – running · – queued · – ended" in shown.stdout
    finally:
        cluster.start()
    until(lambda: service.status()["state"] == "ready")


def test_a_start_waits_for_the_database_with_its_doors_closed(
    make: Callable[[str], Service],
    cluster: Cluster,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(tmp_path / "notify"))
    told.settimeout(DEADLINE_SECONDS)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    service = make(f'url = "{url}"')
    cluster.stop()
    try:
        service.launch()
        said = told.recv(4096).decode()
        assert "EXTEND_TIMEOUT_USEC=" in said
        assert "STATUS=the database does not answer" in said
        with pytest.raises(NotRunning):
            service.status()
    finally:
        cluster.start()
    until(lambda: b"READY=1" in told.recv(4096), 60)
    told.close()
    assert service.status()["state"] == "ready"


def test_a_restart_in_place_continues_its_life(make: Callable[[str], Service], url: str) -> None:
    service = make(f'url = "{url}"')
    service.start()
    service.say("demo", SLOW)
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    done = service.hermesctl("restart", "--keep-turns")
    assert done.returncode == 0, done.stderr
    until(service.answers)
    assert lives(url) == [(1, False)]
    again = service.listen("demo")
    assert again.ending("demo/1").type == "turn.done"
    assert again.types().count("attempt.opened") == 1


def test_another_instance_of_the_same_name_is_refused_until_the_first_has_stopped(
    make: Callable[[str], Service], url: str
) -> None:
    first, second = make(f'url = "{url}"'), make(f'url = "{url}"')
    first.start()
    assert exit_status(second) == 78
    assert f"another host with the name {socket.gethostname()}" in second.log()
    assert str(first.places.state) in second.log()
    assert first.hermesctl("send", "demo", "hello").returncode == 0
    assert first.stop() == 0
    second.start()
    assert [row["session"] for row in second.show("sessions")] == ["demo"]


def test_a_service_whose_life_was_ended_ends(make: Callable[[str], Service], url: str) -> None:
    service = make(f'url = "{url}"')
    service.start()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE lives SET gone = true")
    service.hermesctl("send", "demo", "hello", "--no-wait")
    assert service.process is not None
    assert service.process.wait(DEADLINE_SECONDS) == 1
    assert "ended by another start" in service.log()


@pytest.mark.parametrize(
    ("journal", "fault"),
    [
        ('url = "postgresql://me:swordfish@localhost/x"', "contains a password"),
        ('url = "postgresql://localhost/x?password=swordfish"', "contains a password"),
        ('url = "http://localhost/x"', "postgresql://host/database"),
        ('password_file = "secret"', "without url"),
        ('url = "postgresql://localhost/x"\npassword_file = "absent"', "cannot be read"),
    ],
)
def test_settings_that_cannot_be_used_end_the_start(
    make: Callable[[str], Service], journal: str, fault: str
) -> None:
    service = make(journal)
    assert exit_status(service) == 78
    assert fault in service.log()
    assert "swordfish" not in service.log()


def test_the_password_comes_from_its_file(make: Callable[[str], Service], cluster: Cluster, url: str) -> None:
    hba = cluster.data / "pg_hba.conf"
    before = hba.read_text()
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE locked SUPERUSER LOGIN PASSWORD 'swordfish'")
        hba.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + before)
        connection.execute("SELECT pg_reload_conf()")
        locked = url.replace(f"{postgres_cluster.USER}@", "locked@")
        until(lambda: _needs_password(locked))
    service = make(f'url = "{locked}"\npassword_file = "secret"')
    service.places.config.mkdir(exist_ok=True)
    secret = service.places.settings_file.parent / "secret"
    secret.write_text("swordfish\n")
    secret.chmod(0o600)
    service.start()
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    assert "swordfish" not in service.log()
    hba.write_text(before)


def _needs_password(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        return "password" in str(error)
    return False


def test_a_pooler_in_transaction_mode_ends_the_start(
    make: Callable[[str], Service], cluster: Cluster, tmp_path: Path
) -> None:
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    port, folder = free_port(), cluster.folder / "pooler"
    folder.mkdir(exist_ok=True)
    shutil.chown(folder, cluster.folder.owner(), cluster.folder.group())
    (folder / "users").write_text(f'"{postgres_cluster.USER}" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\n"
        "pool_mode = transaction\nignore_startup_parameters = options,extra_float_digits\n"
    )
    pooler = subprocess.Popen(
        [*cluster.as_user, program, str(folder / "ini")], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        direct = f"postgresql://{postgres_cluster.USER}@127.0.0.1:{port}/postgres"
        until(lambda: _connects(direct))
        service = make(f'url = "{direct}"')
        assert exit_status(service) == 78
        assert "a pooler that shares connections by transaction" in service.log()
    finally:
        pooler.terminate()
        pooler.wait(DEADLINE_SECONDS)


def _connects(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_cut_line_to_the_database_is_mended_under_a_running_turn(
    make: Callable[[str], Service], cluster: Cluster
) -> None:
    schema = cluster.new_schema()
    with CuttingProxy(cluster.port) as proxy:
        service = make(f'url = "{cluster.url(schema, proxy.port)}"')
        service.start()
        for number in range(5):
            proxy.cut("answer")
            send = ("send", "demo", f"number {number}", "--id", f"key {number}")
            # Refused, or without an answer: the same key again is the same message.
            until(lambda send=send: service.hermesctl(*send).returncode == 0, 60)  # type: ignore[misc]
        listener = service.listen("demo")
        listener.until(lambda: len(listener.of_type("turn.done")) == 5)
        assert listener.types().count("message.accepted") == 5
        assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))
        assert service.stop() == 0
