"""What the console reads: histories with content, tool calls, searches, forks, agents; owners' rows alone."""

from typing import Any
from urllib.parse import quote

import httpx

from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.test_messages import calling, ended, send
from tests.service import Service
from tests.waiting import until

ECHO = {"name": "shell", "arguments": {"command": "echo forty-two"}}


def history(client: httpx.Client, session: str, **query: Any) -> tuple[list[dict[str, Any]], str]:
    answer = client.get(f"/api/sessions/{session}/history", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["turns"], answer.json()["more"]


def test_the_history_has_messages_and_answers_newest_first_in_pages(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("reader", "reader"))
    for number in range(1, 4):
        send(client, "book", f"line {number}")
        ended(client, f"book/{number}")
    turns, more = history(client, "book")
    assert [turn["turn"] for turn in turns] == ["book/3", "book/2", "book/1"]
    assert more == ""
    assert (turns[0]["messages"][0]["text"], turns[0]["text"]) == ("line 3", "You said: line 3")
    newest, more = history(client, "book", limit=2)
    rest, end = history(client, "book", limit=2, before=more)
    assert [turn["turn"] for turn in newest + rest] == ["book/3", "book/2", "book/1"]
    assert end == ""
    assert [turn["turn"] for turn in history(client, "book", before=2)[0]] == ["book/1"]
    assert history(client, "book", before=1) == ([], "")
    assert error_of(client.get("/api/sessions/never/history")) == (404, "unknown")
    for query in ("limit=0", "before=x", f"before={'9' * 30}", "after=2"):
        assert error_of(client.get(f"/api/sessions/book/history?{query}")) == (400, "invalid")


def test_a_tool_call_is_shown_whole(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("toolsmith", "smith"))
    send(client, "forge", calling(ECHO))
    ended(client, "forge/1")
    (call,) = history(client, "forge")[0][0]["tools"]
    path = f"/api/turns/forge/1/calls/{quote(call['call'], safe='')}"
    (attempt,) = client.get(path).json()["attempts"]
    assert attempt["arguments"] == '{"command": "echo forty-two"}'
    assert "forty-two" in attempt["result"]
    assert (attempt["attempt"], attempt["ok"]) == (1, 1)
    assert error_of(client.get("/api/turns/forge/1/calls/none")) == (404, "unknown")
    stranger = gateway.client(gateway.token("stranger", "stranger"))
    assert error_of(stranger.get(path)) == (404, "unknown")
    assert error_of(stranger.get("/api/sessions/forge/history")) == (404, "unknown")


def test_a_fork_begins_with_the_turns_up_to_one(gateway: GatewayProcess, service: Service) -> None:
    client = gateway.client(gateway.token("forker", "fork"))
    for number in (1, 2):
        send(client, "trunk", f"step {number}")
        ended(client, f"trunk/{number}")
    key = {"Idempotency-Key": "branch-1"}
    for _ in range(2):
        answer = client.post(
            "/api/sessions/trunk/fork", json={"through_turn": 1, "session": "branch"}, headers=key
        )
        assert (answer.status_code, answer.json()) == (200, {"session": "branch"})
    (past,) = history(client, "branch")[0]
    assert (past["messages"][0]["text"], past["text"], past["state"]) == (
        "step 1",
        "You said: step 1",
        "past",
    )
    send(client, "branch", "another step")
    assert service.listen("fork:branch").ending("fork:branch/1").type == "turn.done"
    assert [turn["state"] for turn in history(client, "branch")[0]] == ["done", "past"]
    assert len(history(client, "trunk")[0]) == 2
    empty = client.post("/api/sessions/trunk/fork", json={"through_turn": 0, "session": "empty"})
    assert empty.json() == {"session": "empty"}
    assert history(client, "empty") == ([], "")


def test_a_fork_that_cannot_be_made_says_why(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("clumsy", "clumsy"))
    send(client, "one", "hi")
    ended(client, "one/1")
    stranger = gateway.client(gateway.token("thief", "thief"))
    fork = {"through_turn": 1, "session": "mine"}
    for name in ("one", "clumsy:one"):
        assert error_of(stranger.post(f"/api/sessions/{name}/fork", json=fork)) == (404, "unknown")
    assert error_of(client.post("/api/sessions/one/fork", json={**fork, "through_turn": 9})) == (
        404,
        "unknown",
    )
    assert error_of(client.post("/api/sessions/one/fork", json={**fork, "session": "one"})) == (
        400,
        "invalid",
    )
    assert client.post("/api/sessions/one/fork", json=fork).status_code == 200
    assert error_of(client.post("/api/sessions/one/fork", json=fork)) == (409, "conflict")
    for body in (
        {"session": "x"},
        {"through_turn": -1, "session": "x"},
        {"through_turn": 2**70, "session": "x"},
    ):
        assert error_of(client.post("/api/sessions/one/fork", json=body)) == (400, "invalid")


def test_sessions_are_found_by_words(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("seeker", "seeker"))
    for session, text in (("garden", "plant a pear tree"), ("kitchen", "bake bread"), ("pear-notes", "hi")):
        send(client, session, text)
        ended(client, f"{session}/1")

    def found(words: str) -> set[str]:
        rows, after = [], ""
        while True:
            page = client.get("/api/sessions", params={"words": words, "after": after}).json()
            rows += page["sessions"]
            if not (after := page["more"]):
                return {row["session"] for row in rows}

    assert found("pear") == {"garden", "pear-notes"}
    assert found("TREE pear") == {"garden"}
    assert found("seeker") == set()
    assert error_of(client.get("/api/sessions", params={"words": "x" * 201})) == (400, "invalid")


def test_an_owners_rows_are_found_behind_those_of_many_others(gateway: GatewayProcess) -> None:
    """More foreign rows than the pages that are read for one answer; each page has one row here."""
    owner = gateway.client(gateway.token("early", "early"))
    send(owner, "first", "hi")
    ended(owner, "first/1")
    other = gateway.client(gateway.token("late", "late"))
    for number in range(25):
        send(other, f"s{number}", "hi")
    until(lambda: len(other.get("/api/turns?state=done&limit=100").json()["turns"]) == 25)
    sessions = owner.get("/api/sessions?limit=1").json()["sessions"]
    assert [row["session"] for row in sessions] == ["first"]
    assert [row["turn"] for row in owner.get("/api/turns?limit=1").json()["turns"]] == ["first/1"]


def test_the_agents_are_listed_by_name_and_nothing_else(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("chooser", "choose", "watch"))
    assert client.get("/api/agents").json() == {"agents": [{"agent": "default", "kind": "builtin"}]}
