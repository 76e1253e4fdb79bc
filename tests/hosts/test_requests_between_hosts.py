"""Requests between two lives through a real server: carried out once, answered whatever notice is lost."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import psycopg
import pytest

from ipc.messages import Accepted, Answer, Done, Queue, Refused, Submit, Table
from supervisor.clock import monotonic
from supervisor.containment import Containment
from supervisor.hosts.peers import Peers
from supervisor.hosts.requests import LIMIT_SECONDS, Requests
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.notices import PAYLOAD_BYTES_MAX, Notices
from supervisor.journal.postgres.read_threads import ReadThreads
from supervisor.journal.postgres.request_rows import RequestRows, Stand
from tests.hosts.test_notices import never, prepared
from tests.postgres_cluster import Cluster
from tests.waiting import soon

SUBMIT = Submit("demo", "hello", "key")
EMPTY_BYTES = len(msgspec.json.encode(Submit("demo", "", "key")))
ACCEPTED = Accepted("m_1", 7)


class Host:
    """One side: what it was asked to do, and how it answers."""

    def __init__(self, url: str, life: int, name: str) -> None:
        self._url = url
        self._name = f"hermes test {life}"
        self.life = life
        self.asking = ReadThreads(1)
        self.notices = Notices(partial(connect, url, self._name), self.asking, life)
        contain = Containment(self, lambda: 0.0, lambda place: None)
        self.peers = Peers(self.notices, contain)
        self.served: list[Any] = []
        self.answer: Callable[[Any, Callable[[Answer], None], Callable[[], None]], None] = (
            lambda request, reply, moved: reply(ACCEPTED)
        )
        self.requests = Requests(
            notices=self.notices,
            rows=RequestRows(self.notices),
            peers=self.peers,
            serve=self._serve,
            contain=contain,
        )

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""

    def _serve(self, request: Any, reply: Callable[[Answer], None], moved: Callable[[], None]) -> None:
        self.served.append(request)
        self.answer(request, reply, moved)

    def ask(self, to: "Host", request: msgspec.Struct = SUBMIT, seconds: float = LIMIT_SECONDS) -> list[Any]:
        """What comes back, once it has come."""
        told: list[Any] = []
        self.requests.ask(to.life, request, told.append, lambda: told.append("moved"), monotonic() + seconds)
        return told

    def cut(self) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                (self._name,),
            )

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def url(cluster: Cluster, schema: str) -> str:
    return prepared(cluster.url(schema))


@asynccontextmanager
async def two_hosts(url: str) -> AsyncIterator[tuple[Host, Host]]:
    hosts = []
    for name in ("one", "two"):
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "INSERT INTO lives (host, name, secret) VALUES (%s, %s, 'x') RETURNING epoch", (name, name)
            ).fetchone()
        assert row is not None
        hosts.append(Host(url, row[0], name))
    one, two = hosts
    try:
        for host in hosts:
            host.peers.open()
        await soon(lambda: two.life in one.peers.others and one.life in two.peers.others)
        yield one, two
    finally:
        for host in hosts:
            host.notices.close()
            host.asking.close()


def play(url: str, act: Callable[[Host, Host], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with two_hosts(url) as hosts:
            await act(*hosts)

    asyncio.run(run())


def asked(life: int, id: str, to: Host, at: float | None, body: Any) -> str:
    """The payload of a request, as another host would send it."""
    return json.dumps([["ask", at, id, life, body]])


def test_a_request_is_carried_out_and_its_answer_comes_back(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        await soon(lambda: one.peers.others == {two.life: "two"})
        told = one.ask(two)
        await soon(lambda: told)
        assert (told, two.served) == ([ACCEPTED], [SUBMIT])
        await soon(lambda: one.sql("SELECT count(*) FROM requests") == [(0,)])

    play(url, act)


def test_a_long_request_and_a_long_answer_are_read_from_their_row(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        table = Table(({"text": "é\0" * 20_000},), "more")
        two.answer = lambda request, reply, moved: reply(table)
        long = Queue("demo", message="é" * 300, by="x")
        submit = Submit("demo", "long\0" * 10_000, "key")
        for request in (long, submit):
            told = one.ask(two, request)
            await soon(lambda told=told: told)  # type: ignore[misc]
            assert told == [table]
        assert two.served == [long, submit]

    play(url, act)


@pytest.mark.parametrize("text", ["x" * (PAYLOAD_BYTES_MAX - EMPTY_BYTES), "é" * (PAYLOAD_BYTES_MAX // 2)])
def test_a_request_that_just_does_not_fit_a_notice_is_read_from_its_row(url: str, text: str) -> None:
    """With what a notice has beside it; the server counts bytes."""

    async def act(one: Host, two: Host) -> None:
        told = one.ask(two, Submit("demo", text, "key"))
        await soon(lambda: told)
        assert (told, [each.text for each in two.served]) == ([ACCEPTED], [text])

    play(url, act)


def test_a_request_before_the_first_connect_is_told_with_its_time(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        (life,) = one.sql("INSERT INTO lives (host, name, secret) VALUES ('3', '3', 'x') RETURNING epoch")[0]
        three = Host(url, life, "three")
        told = three.ask(two)
        three.peers.open()
        await soon(lambda: told)
        assert told == [ACCEPTED]
        three.notices.close()
        three.asking.close()

    play(url, act)


def test_rows_of_hosts_that_have_died_are_deleted_when_they_are_old(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        sql = """INSERT INTO requests (id, from_life, to_life, body, asked_at)
                 VALUES (%s, 98, 99, '', clock_timestamp() - make_interval(secs => %s))"""
        for id, age in (("old", 61), ("young", 50), ("answered", 1)):
            one.sql(sql, id, age)
        RequestRows(one.notices).forget(["answered"])
        await soon(lambda: len(one.sql("SELECT id FROM requests")) < 3)
        assert one.sql("SELECT id FROM requests") == [("young",)]

    play(url, act)


def test_what_is_looked_up_about_requests_and_sessions_knows_which_lives_are_gone(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        sql = "INSERT INTO requests (id, from_life, to_life, body, answer) VALUES (%s, %s, %s, '{}', %s)"
        for id, to, answer in (("a", two.life, None), ("b", two.life, "{}"), ("c", 99, None)):
            one.sql(sql, id, one.life, to, answer)
        stands: list[Mapping[str, Stand]] = []
        RequestRows(one.notices).stands(["a", "c"], stands.append, never)
        missed: list[Any] = []
        RequestRows(two.notices).unanswered(missed.extend)
        await soon(lambda: stands and missed)
        assert {id: each.is_gone for id, each in stands[0].items()} == {"a": False, "c": True}
        assert [each.id for each in missed] == ["a"], "the next image of a host has not taken it"
        one.sql("INSERT INTO owners VALUES ('s', %s, 0, true)", two.life)
        lives: list[int] = []
        for gone in (False, True):
            one.sql("UPDATE lives SET gone = %s WHERE epoch = %s", gone, two.life)
            RequestRows(one.notices).owner("s", lives.append, never)
            await soon(lambda gone=gone: len(lives) == 1 + gone)  # type: ignore[misc]
        assert lives == [two.life, 0]

    play(url, act)


def test_a_request_that_comes_twice_is_carried_out_once(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        body = msgspec.to_builtins(SUBMIT)
        now = two.notices.server_now
        for _ in range(3):
            two.sql(
                "SELECT pg_notify(%s, %s)", two.notices.channel(two.life), asked(1, "1.1", two, now, body)
            )
        await soon(lambda: two.served)
        told = one.ask(two)
        await soon(lambda: told)
        assert len(two.served) == 2

    play(url, act)


def test_a_request_whose_notice_was_lost_is_found_after_the_next_connect(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        body = msgspec.json.encode(SUBMIT).decode()
        sql = "INSERT INTO requests (id, from_life, to_life, body) VALUES ('1.9', %s, %s, %s)"
        one.sql(sql, one.life, two.life, body)
        two.cut()
        await soon(lambda: two.served == [SUBMIT])
        await soon(lambda: one.sql("SELECT answer IS NOT NULL FROM requests") == [(True,)])

    play(url, act)


def test_an_answer_whose_notice_was_lost_is_found(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        two.answer = lambda request, reply, moved: None
        told = one.ask(two)
        await soon(lambda: two.served)
        answer = msgspec.json.encode(ACCEPTED).decode()
        # The request is told before its row is written.
        await soon(lambda: one.sql("UPDATE requests SET answer = %s RETURNING id", answer))
        await soon(lambda: told == [ACCEPTED])

    play(url, act)


def test_an_answer_that_is_written_before_its_request_is_found(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        RequestRows(two.notices).answer("1.1", one.life, json.dumps("moved"), never)
        await soon(lambda: two.sql("SELECT answer FROM requests"))
        rows, of_nobody = RequestRows(one.notices), 99
        rows.ask("1.1", of_nobody, "{}", never)
        found: list[Mapping[str, Stand]] = []
        rows.stands(["1.1"], found.append, never)
        await soon(lambda: found)
        assert found[0]["1.1"].answer == json.dumps("moved")
        assert two.sql("SELECT count(*) FROM requests") == [(1,)]

    play(url, act)


def test_an_answer_that_the_database_did_not_take_is_given_after_the_next_connect(
    cluster: Cluster, url: str
) -> None:
    async def act(one: Host, two: Host) -> None:
        replies: list[Callable[[Answer], None]] = []
        two.answer = lambda request, reply, moved: replies.append(reply)
        one.ask(two)
        await soon(lambda: replies)
        cluster.stop("immediate")
        replies[0](Done(note="late"))
        cluster.start()
        sent: list[str] = []
        two.peers.on_connected(lambda: sent.append("again"))
        await soon(lambda: sent)
        assert not two.requests._unsent

    play(url, act)


@pytest.mark.parametrize("how", ["moved", "gone"])
def test_a_session_that_is_not_there_any_more_is_looked_for_again(url: str, how: str) -> None:
    async def act(one: Host, two: Host) -> None:
        two.answer = lambda request, reply, moved: moved() if how == "moved" else None
        told = one.ask(two)
        await soon(lambda: two.served)
        if how == "gone":
            one.sql("UPDATE lives SET gone = true WHERE epoch = %s", two.life)
        await soon(lambda: told == ["moved"])

    play(url, act)


def test_a_host_that_does_not_answer_in_time_is_named_and_does_nothing_later(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        replies: list[Callable[[Answer], None]] = []
        two.answer = lambda request, reply, moved: replies.append(reply)
        told = one.ask(two, seconds=0.6)
        await soon(lambda: told)
        assert isinstance(told[0], Refused)
        assert "host two" in told[0].error
        assert told[0].retry_after_seconds
        replies[0](ACCEPTED)
        assert two.notices.server_now is not None
        late = two.notices.server_now - LIMIT_SECONDS - 0.1
        body = msgspec.to_builtins(SUBMIT)
        for id, at in (("1.7", late), ("1.8", two.notices.server_now)):
            two.sql("SELECT pg_notify(%s, %s)", two.notices.channel(two.life), asked(1, id, two, at, body))
        await soon(lambda: len(two.served) == 2)
        assert len(told) == 1
        assert "1.7" not in two.requests._taken

    play(url, act)


def test_a_request_of_a_later_version_is_refused_by_the_answerer(url: str) -> None:
    class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
        session: str

    async def act(one: Host, two: Host) -> None:
        told = one.ask(two, Unknown("demo"))
        await soon(lambda: told)
        assert isinstance(told[0], Refused)
        assert "does not know this request" in told[0].error
        assert not two.served

    play(url, act)


def test_a_defect_of_the_answerer_is_told_without_its_words(url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        def broken(request: Any, reply: Callable[[Answer], None], moved: Callable[[], None]) -> None:
            raise KeyError("secret")

        two.answer = broken
        told = one.ask(two)
        await soon(lambda: told)
        assert isinstance(told[0], Refused)
        assert told[0].code == "internal"
        assert "secret" not in told[0].error

    play(url, act)


def test_a_database_that_is_away_is_the_reason_of_the_refusal(cluster: Cluster, url: str) -> None:
    async def act(one: Host, two: Host) -> None:
        two.answer = lambda request, reply, moved: None
        waiting = one.ask(two)
        await soon(lambda: two.served)
        cluster.stop("immediate")
        try:
            told = one.ask(two)
            await soon(lambda: told and waiting)
        finally:
            cluster.start()
        for answer in (*told, *waiting):
            assert "the database does not answer" in answer.error

    play(url, act)
