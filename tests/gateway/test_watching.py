"""Tables on the live socket: the present rows at once, then the changed ones, from one poll for all."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from websockets.sync.client import ClientConnection

from gateway.namespace import Namespace
from gateway.watching import SESSIONS_FIRST, Watcher
from ipc.messages import Answer, Request, Show, Table
from ipc.paging import key_of, page, place
from ipc.places import find_places
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_messages import QUESTION, calling, ended, send
from tests.gateway.test_streams import ask, next_of, open_live
from tests.hermesctl.peer import Peer, opened
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until


def rows_until(live: ClientConnection, session: str, seq: int) -> list[dict[str, Any]]:
    """The rows of all frames of sessions, up to the one that has this session as far as this seq."""
    found: list[dict[str, Any]] = []
    while True:
        frame = next_of(live, "sessions")
        found += frame["rows"]
        if any(row["session"] == session and row["seq"] >= seq for row in frame["rows"]):
            return found


def test_sessions_come_at_once_and_then_as_they_change(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("watchman", "night"))
    for name in ("quiet", "loud"):
        send(client, name, "hi")
        ended(client, f"{name}/1")
    stranger = gateway.client(gateway.token("day", "day"))
    send(stranger, "elsewhere", "hi")
    with open_live(gateway, gateway.token("watchman-2", "night", "watch")) as live:
        ask(live, watch=["sessions"])
        first = next_of(live, "sessions")
        assert first["all"]
        assert [row["session"] for row in first["rows"]] == ["loud", "quiet"]
        send(client, "loud", "again")
        send(stranger, "elsewhere", "again")
        ended(client, "loud/2")
        seq = client.get("/api/turns/loud/2/why").json()["rows"][-1]["seq"]
        changed = rows_until(live, "loud", seq)
        assert {row["session"] for row in changed} == {"loud"}
        assert changed[-1].keys() == first["rows"][0].keys()
        ask(live, watch=[])
        ask(live, subscribe="loud", after=seq)
        next_of(live, "subscribed")
        send(client, "loud", "once more")
        kinds = set()
        while "turn.done" not in kinds:
            kinds.add(json.loads(live.recv(DEADLINE_SECONDS))["type"])
        assert "sessions" not in kinds


def test_open_questions_come_and_go(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("asker", "asker"))
    with open_live(gateway, gateway.token("asker-2", "asker")) as live:
        ask(live, watch=["questions"])
        assert next_of(live, "questions")["rows"] == []
        send(client, "wall", calling(QUESTION))
        (row,) = next_of(live, "questions")["rows"]
        assert (row["question"], row["session"]) == ("wall/1#1", "wall")
        client.post(f"/api/questions/{quote('wall/1#1', safe='')}/answer", json={"text": "red"})
        assert next_of(live, "questions")["rows"] == []


def test_the_service_is_watched_with_the_right_to_operate(gateway: GatewayProcess) -> None:
    with open_live(gateway, gateway.token("operator", "ops", "operate,watch")) as live:
        ask(live, watch=["service", "questions"])
        frame = next_of(live, "service")
        assert frame["status"]["seats"] == 2
        assert {row["seat"] for row in frame["workers"]} >= {0, 1}
        assert isinstance(frame["services"], list)
        # Others' sessions are not named.
        other = gateway.client(gateway.token("other-ops", "other"))
        send(other, "hidden", "[[slow count=200 interval=0.5]]")
        until(lambda: other.get("/api/turns?state=running").json()["turns"])
        while not any(row["state"] == "busy" for row in frame["workers"]):
            frame = next_of(live, "service")
        assert {row["session"] for row in frame["workers"]} == {None}
        other.post("/api/sessions/hidden/interrupt")


def test_what_may_not_be_watched_is_said(gateway: GatewayProcess) -> None:
    with open_live(gateway, gateway.token("talker", rights="talk")) as live:
        for wanted, code in ((["service"], "denied"), (["weather"], "invalid"), ("sessions", "invalid")):
            ask(live, watch=wanted)
            assert next_of(live, "error")["error"]["code"] == code
        ask(live, watch=["sessions"])
        assert next_of(live, "sessions")["all"]


def test_a_watcher_is_told_that_the_supervisor_is_away_and_goes_on_after_it(
    tmp_path: Path, model_server: FakeModel
) -> None:
    with (
        Service(tmp_path / "home", settings_for(model_server, workers="count = 1")) as service,
        GatewayProcess(service.places) as gateway,
        open_live(gateway) as live,
    ):
        ask(live, watch=["sessions", "service"])
        assert next_of(live, "supervisor")["up"]
        assert next_of(live, "sessions")["rows"] == []
        service.kill()
        assert not next_of(live, "supervisor")["up"]
        service.start()
        assert next_of(live, "supervisor")["up"]
        accepted = service.say("after", "hi")
        assert rows_until(live, "after", accepted.seq)[-1]["session"] == "after"
        assert next_of(live, "service")["status"]["epoch"] == 2


class Many:
    """A scripted supervisor with ten thousand sessions, the newest first; it counts what is read."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = [
            {"session": f"s{number}", "seq": 1, "last_at": 20_000.0 - number} for number in range(10_000)
        ]
        self.read = 0

    def move(self, *numbers: int) -> None:
        """These get an event each."""
        now = self.rows[0]["last_at"]
        for number in numbers:
            (row,) = (row for row in self.rows if row["session"] == f"s{number}")
            self.rows.remove(row)
            now += 0.001
            self.rows.insert(0, row | {"seq": row["seq"] + 1, "last_at": now})

    def reply(self, peer: Peer, request: Request) -> list[Answer]:
        assert isinstance(request, Show)
        if request.what != "sessions":
            return [Table(({"state": "ready"},))]
        last_at, name = key_of(request.after, tuple[float, str], (1e9, ""))
        below = ((row, place(row["last_at"], row["session"])) for row in self.rows
                 if (row["last_at"], row["session"]) < (last_at, name))  # fmt: skip
        found = page(below, request.limit)
        self.read += len(found.rows)
        return [found]


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[GatewayProcess]:
    places = find_places(str(tmp_path))
    with GatewayProcess(places, socket=places.control) as gateway:
        yield gateway


def test_ten_thousand_sessions_and_many_watchers_cost_a_page_a_poll(
    lone: GatewayProcess, tmp_path: Path
) -> None:
    many = Many()
    with opened(tmp_path, many.reply) as peer:
        health = lone.client("")
        until(lambda: health.get("/health").status_code == 200)
        with ExitStack() as stack:
            lives = [stack.enter_context(open_live(lone)) for _ in range(20)]
            for live in lives:
                ask(live, watch=["sessions"])
                assert len(next_of(live, "sessions")["rows"]) == SESSIONS_FIRST
            many.read = 0
            before = len(peer.requests(Show))
            many.move(9_000)
            for live in lives:
                assert [row["session"] for row in next_of(live, "sessions")["rows"]] == ["s9000"]
            polls = len(peer.requests(Show)) - before
            assert many.read <= SESSIONS_FIRST * polls
            # A poll or two for all of them, not for each.
            assert polls < len(lives)
            # More than a page between two polls: every one of them arrives.
            many.move(*range(5_000, 5_250))
            missing = {f"s{number}" for number in range(5_000, 5_250)}
            while missing:
                missing -= {row["session"] for row in next_of(lives[0], "sessions")["rows"]}
        stopped = _requests_at_rest(peer)
        assert health.get("/health").status_code in (200, 503)
        assert len(peer.requests(Show)) <= stopped + 1


def _requests_at_rest(peer: Peer) -> int:
    """The number of requests once it does not grow between two looks that are two polls apart."""
    counts: list[tuple[float, int]] = []

    def is_at_rest() -> bool:
        now = time.monotonic()
        counts.append((now, len(peer.requests(Show))))
        return any(then <= now - 2.5 and count == counts[-1][1] for then, count in counts)

    until(is_at_rest)
    return counts[-1][1]


def test_a_watcher_that_does_not_read_holds_a_bounded_number_of_rows() -> None:
    woken: list[bool] = []
    watcher = Watcher(Namespace("anna"), ["sessions"], lambda: woken.append(True))
    watcher.give_changed([{"session": "anna:early"}])
    watcher.give_newest([])
    assert json.loads(watcher.take()[0]) == {"type": "sessions", "rows": [], "all": True}
    woken.clear()
    watcher.give_changed([{"session": "bob:chat"}])
    assert (woken, watcher.take()) == ([], [])
    for number in range(900):
        watcher.give_changed([{"session": f"anna:{number % 300}", "seq": number}])
    rows = json.loads(watcher.take()[0])["rows"]
    assert [row["seq"] for row in rows] == list(range(600, 900))
    watcher.give_changed([{"session": f"anna:{number}"} for number in range(1_001)])
    assert watcher.take() == []
    assert watcher.missing == {"sessions"}


def test_a_table_that_is_the_same_is_not_sent_again() -> None:
    watcher = Watcher(Namespace(""), ["questions"], lambda: None)
    watcher.give("questions", b"one")
    watcher.give("questions", b"two")
    assert watcher.take() == [b"two"]
    watcher.give("questions", b"two")
    assert watcher.take() == []
    watcher.give("questions", b"one")
    assert watcher.take() == [b"one"]
