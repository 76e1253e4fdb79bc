"""Judges a whole history: what the journal holds against what must be true, and against what clients saw.

It reads a copy of the journal, so the service may have ended in any way. Every complaint is an AssertionError
that names the session, the turn or the message.
"""

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipc.messages import Accepted, Event

_ENDINGS = {"turn.done": "done", "turn.failed": "failed", "turn.interrupted": "interrupted"}


@dataclass
class Sight:
    """What one client saw of one session, over all its reconnects: each key's answer, and every event."""

    session: str
    after: int = 0
    accepted: dict[str, Accepted] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def seq(self) -> int:
        """Where to go on after a reconnect."""
        return self.events[-1].seq if self.events else self.after

    def answered(self, key: str, answer: Accepted) -> None:
        """The same key must always mean the same message at the same place."""
        before = self.accepted.setdefault(key, answer)
        assert (before.message, before.seq) == (answer.message, answer.seq), f"{key}: {before} then {answer}"

    def saw(self, event: Event) -> None:
        assert event.session == self.session, f"{event} was told to a follower of {self.session}"
        assert event.seq == self.seq + 1, f"{self.session}: {event.seq} told after {self.seq}"
        self.events.append(event)


@dataclass(frozen=True)
class History:
    """The rows of a journal, each table in its own order."""

    sessions: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    attempts: list[dict[str, Any]]
    texts: list[dict[str, Any]]
    tool_calls: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    events: list[dict[str, Any]]
    tallies: dict[str, int]

    def counts(self) -> dict[str, int]:
        """How much there was, and how it ended."""
        ends = Counter(f"turns {turn['state']}" for turn in self.turns)
        return {
            "sessions": len(self.sessions),
            "messages": len(self.messages),
            "messages dropped": sum(message["state"] == "dropped" for message in self.messages),
            **dict(sorted(ends.items())),
            "attempts": len(self.attempts),
            "attempts lost": sum(attempt["state"] == "lost" for attempt in self.attempts),
            "events": len(self.events),
        }


def read_history(journal: Path) -> History:
    """All of a journal, as SQLite recovers it from the file and its log."""
    with _copied(journal) as copy, closing(sqlite3.connect(copy)) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"

        def rows(table: str, order: str) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]

        return History(
            sessions=rows("sessions", "name"),
            messages=rows("messages", "position"),
            turns=rows("turns", "position"),
            attempts=rows("attempts", "turn, number"),
            texts=rows("texts", 'turn, attempt, "offset"'),
            tool_calls=rows("tool_calls", "position"),
            questions=rows("questions", "turn, number"),
            events=rows("events", "session, seq"),
            tallies={row["what"]: row["number"] for row in rows("tallies", "what")},
        )


@contextmanager
def _copied(journal: Path) -> Iterator[Path]:
    """Reading a log that was left behind would change it, so a copy is read."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "journal.db"
        for ending in ("", "-wal"):
            if (source := Path(f"{journal}{ending}")).exists():
                shutil.copy(source, f"{copy}{ending}")
        yield copy


def check_history(journal: Path, sights: Iterable[Sight] = ()) -> History:
    """What must hold at every instant, also of a journal cut off in the middle of work."""
    history = read_history(journal)
    lives = _replay(history)
    _check_messages(history, lives)
    _check_turns(history, lives)
    _check_words(history)
    _check_tokens(history)
    _check_tools(history)
    for sight in sights:
        _check_sight(history, sight)
    return history


def check_quiet(journal: Path, sights: Iterable[Sight] = ()) -> History:
    """The same when all work has come to its end: whatever was accepted has ended, exactly once."""
    history = check_history(journal, sights)
    for message in history.messages:
        assert message["state"] in ("taken", "dropped", "failed"), f"{message['id']} never ended"
    for turn in history.turns:
        assert turn["state"] in _ENDINGS.values(), f"{turn['id']} is left {turn['state']}"
    for attempt in history.attempts:
        assert attempt["state"] not in ("open", "stopped"), f"{attempt} is left open"
    for call in history.tool_calls:
        assert call["state"] != "started", f"{call} is left open"
    for question in history.questions:
        assert question["state"] != "open", f"{question} is left open"
    assert not [session for session in history.sessions if session["held"]], "a session is left held"
    return history


@dataclass
class _Life:
    """One session, told again from its events."""

    name: str
    seq: int = 0
    waiting: list[str] = field(default_factory=list)
    accepted: dict[str, int] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)  # of clips
    answers: set[str] = field(default_factory=set)  # messages that answered a question
    held: bool = False
    open_turn: str | None = None
    open_attempt: int | None = None
    open_question: str | None = None
    attempts: Counter[str] = field(default_factory=Counter)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)

    def tell(self, event: dict[str, Any]) -> None:
        body = json.loads(event["body"])
        where = f"{self.name} at {event['seq']} ({event['type']})"
        assert event["seq"] == self.seq + 1, f"{where}: a gap or a repeat after {self.seq}"
        self.seq += 1
        match event["type"]:
            case "message.accepted":
                assert body["message"] not in self.accepted, f"{where}: accepted twice"
                self.accepted[body["message"]] = self.seq
                self.waiting.append(body["message"])
                self.state[body["message"]] = "transcribing" if body["kind"] == "voice" else "waiting"
            case "transcript.ready":
                assert self.state[body["message"]] == "transcribing", f"{where}: a second transcript"
                self.state[body["message"]] = "waiting"
                self.words[body["message"]] = body["text"]
            case "transcript.failed" | "message.dropped" as kind:
                self._unqueue(body["message"], kind.rpartition(".")[2], where)
            case "session.begun":
                assert event["seq"] == 1, f"{where}: it had begun already"
            case "session.held" | "session.released" as kind:
                assert self.held == (kind == "session.released"), f"{where}: it was so already"
                self.held = not self.held
            case "turn.opened":
                self._opened(body, where)
            case "turn.joined":
                assert body["turn"] == self.open_turn, f"{where}: {self.open_turn} is open"
                self._take_first(body, where)
            case "turn.steered":
                self._check_running(body["turn"], where)
                self._take(body["message"], body["turn"], where)
            case "attempt.opened":
                self._attempt_opened(body, where)
            case "attempt.lost":
                self._check_running(body["turn"], where)
                assert body["attempt"] == self.open_attempt, f"{where}: {self.open_attempt} was open"
                self.open_attempt = None
            case "tool.started" | "tool.finished":
                self._check_running(body["turn"], where)
            case "question.asked" | "question.answered":
                self._question(event["type"], body, where)
            case kind if kind in _ENDINGS:
                assert body["turn"] == self.open_turn, f"{where}: {self.open_turn} is open"
                by_message = body.get("by") in self.accepted
                assert self.attempts[body["turn"]] or not by_message, f"{where}: before anybody began it"
                self.ended[body["turn"]] = {"state": _ENDINGS[kind], **body}
                self.open_turn = self.open_attempt = self.open_question = None

    def _opened(self, body: dict[str, Any], where: str) -> None:
        assert self.open_turn is None, f"{where}: {self.open_turn} is open"
        assert not self.held, f"{where}: the session was held"
        assert body["turn"] == f"{self.name}/{len(self.ended) + 1}", f"{where}: out of order: {body['turn']}"
        self.open_turn = body["turn"]
        self._take_first(body, where)

    def _take_first(self, body: dict[str, Any], where: str) -> None:
        assert not self.attempts[body["turn"]], f"{where}: it has begun"
        first = self.waiting[: len(body["messages"])]
        assert body["messages"] == first, f"{where}: {body['messages']} before {first}"
        for message in first:
            self._take(message, body["turn"], where)

    def _question(self, kind: str, body: dict[str, Any], where: str) -> None:
        """One at a time, and nobody works while it waits, unless the attempt holds for the answer."""
        assert body["turn"] == self.open_turn, f"{where}: {self.open_turn} is open"
        if kind == "question.asked":
            assert self.open_question is None, f"{where}: {self.open_question} waits already"
            attempt = self.open_attempt if body.get("holds") else None
            self.open_question, self.open_attempt = body["question"], attempt
            return
        assert body["question"] == self.open_question, f"{where}: {self.open_question} was asked"
        self.open_question = None
        if message := body.get("message"):
            self._take(message, body["turn"], where)
            self.answers.add(message)

    def _attempt_opened(self, body: dict[str, Any], where: str) -> None:
        assert body["turn"] == self.open_turn, f"{where}: an attempt at {body['turn']}, which is not open"
        assert self.open_attempt is None, f"{where}: attempt {self.open_attempt} was still open"
        assert self.open_question is None, f"{where}: {self.open_question} waits for an answer"
        self.attempts[body["turn"]] += 1
        assert body["attempt"] == self.attempts[body["turn"]], f"{where}: attempts are not counted one by one"
        self.open_attempt = body["attempt"]

    def _check_running(self, turn: str, where: str) -> None:
        assert turn == self.open_turn, f"{where}: {self.open_turn} is open"
        assert self.open_attempt is not None, f"{where}: no attempt runs"

    def _take(self, message: str, turn: str, where: str) -> None:
        assert message in self.waiting, f"{where}: {message} did not wait"
        ahead = self.waiting[: self.waiting.index(message) + 1]
        silent = [each for each in ahead if self.state[each] == "transcribing"]
        assert not silent, f"{where}: {message} before the words of {silent}"
        self._unqueue(message, "taken", where)
        self.taken[message] = turn

    def _unqueue(self, message: str, state: str, where: str) -> None:
        assert message in self.waiting, f"{where}: {message} did not wait"
        self.waiting.remove(message)
        self.state[message] = state


def _replay(history: History) -> dict[str, _Life]:
    lives = {session["name"]: _Life(session["name"]) for session in history.sessions}
    for event in sorted(history.events, key=lambda event: (event["session"], event["seq"])):
        lives[event["session"]].tell(event)
    for session in history.sessions:
        life = lives[session["name"]]
        assert session["seq"] == life.seq, f"{life.name} counts {session['seq']} events, there are {life.seq}"
        assert session["turns"] == len(life.ended) + (life.open_turn is not None), f"{life.name}: turns"
        assert bool(session["held"]) == life.held, f"{life.name}: held"
    assert history.tallies["sessions"] == len(history.sessions)
    return lives


def _check_messages(history: History, lives: dict[str, _Life]) -> None:
    """Every row has one story, and every story a row."""
    keys = Counter((message["session"], message["key"]) for message in history.messages)
    assert not [key for key, count in keys.items() if count > 1], "two messages for one key"
    listed = Counter(each for turn in history.turns for each in json.loads(turn["messages"]))
    for message in history.messages:
        life, name = lives[message["session"]], message["id"]
        assert life.accepted.get(name) == message["seq"], f"{name} is not told where it stands"
        told = life.state[name]
        assert message["state"] == told, f"{name} is {message['state']} and told as {told}"
        assert message["turn"] == life.taken.get(name), f"{name} is part of {message['turn']}"
        if message["kind"] == "voice":
            assert message["text"] == life.words.get(name, ""), f"{name} has other words than were told"
        is_part = told == "taken" and name not in life.answers
        assert listed[name] == is_part, f"{name} is listed by {listed[name]} turns"
    assert len(history.messages) == sum(len(life.accepted) for life in lives.values())


def _check_turns(history: History, lives: dict[str, _Life]) -> None:
    attempts: dict[str, list[dict[str, Any]]] = {}
    for attempt in history.attempts:
        attempts.setdefault(attempt["turn"], []).append(attempt)
    for turn in history.turns:
        life, name = lives[turn["session"]], turn["id"]
        end = life.ended.get(name)
        if end is None:
            assert life.open_turn == name, f"{name} is {turn['state']} and told as ended or never opened"
            assert turn["state"] not in _ENDINGS.values(), f"{name} has an end that was never told"
        else:
            assert turn["state"] == end["state"], f"{name} is {turn['state']} and told as {end['state']}"
            assert turn["text"] == end.get("text", ""), f"the answer of {name} is not the one told"
            assert turn["ended_at"] is not None
        _check_attempts(turn, attempts.pop(name, []), life)
    assert not attempts, f"attempts at turns that do not exist: {attempts}"
    assert len(history.turns) == sum(len(life.ended) + bool(life.open_turn) for life in lives.values())
    states = Counter(turn["state"] for turn in history.turns)
    for state in _ENDINGS.values():
        assert history.tallies[state] == states[state], f"{state} turns are counted wrongly"


def _check_attempts(turn: dict[str, Any], attempts: list[dict[str, Any]], life: _Life) -> None:
    name = turn["id"]
    assert [attempt["number"] for attempt in attempts] == list(range(1, turn["attempts"] + 1)), f"{name}"
    assert turn["attempts"] == life.attempts[name], f"{name} has attempts that were never told"
    running = [attempt for attempt in attempts if attempt["state"] in ("open", "stopped")]
    assert len(running) == (turn["state"] == "running"), f"{name} is {turn['state']} with {running}"
    assert all(attempt is attempts[-1] for attempt in running), f"{name}: an earlier attempt is open"
    answers = [attempt for attempt in attempts if attempt["state"] == "done"]
    assert len(answers) == (turn["state"] == "done"), f"{name} is {turn['state']} with answers {answers}"
    assert not answers or answers[0] is attempts[-1], f"{name} was run again after its answer"


def _check_words(history: History) -> None:
    """What an attempt said is there without a gap; a turn tells the words of all its attempts, in order."""
    said: dict[tuple[str, int], str] = {}
    for piece in history.texts:
        key = (piece["turn"], piece["attempt"])
        assert piece["offset"] == len(said.get(key, "")), f"words of {key} are missing or doubled"
        said[key] = said.get(key, "") + piece["text"]
    for attempt in history.attempts:
        key = (attempt["turn"], attempt["number"])
        if attempt["state"] != "done":
            assert attempt["text_length"] == len(said.get(key, "")), f"the length of {key} is wrong"
    words: dict[str, str] = {}
    for (name, _), text in sorted(said.items()):
        words[name] = words.get(name, "") + text
    for turn in (turn for turn in history.turns if turn["state"] == "done"):
        before = turn["text"][: turn["earlier_length"]]
        assert before == words.get(turn["id"], ""), f"the answer of {turn['id']} has other words than it said"
    for event in history.events:
        body = json.loads(event["body"])
        if event["type"] == "turn.interrupted":
            partial = words.get(body["turn"], "")
            assert body["partial"] == partial, f"{body['turn']} was cut with other words than it said"
        elif event["type"] == "attempt.lost":
            until = (said.get((body["turn"], number + 1), "") for number in range(body["attempt"]))
            assert body["offset"] == sum(map(len, until)), f"{body} counts other words than were said"


def _check_tokens(history: History) -> None:
    """A turn that has ended tells the tokens of all its attempts."""
    spent = Counter[str]()
    for attempt in history.attempts:
        spent[attempt["turn"]] += attempt["input_tokens"]
    cost = {turn["id"]: (turn["input_tokens"], turn["output_tokens"]) for turn in history.turns}
    for event in history.events:
        if event["type"] in _ENDINGS and (body := json.loads(event["body"])):
            read, written = body["usage"]["input_tokens"], body["usage"]["output_tokens"]
            assert cost[body["turn"]] == (read, written), f"{body['turn']} is told to have cost {body}"
            assert read >= spent[body["turn"]], f"{body['turn']} cost more than it tells"


def _check_tools(history: History) -> None:
    told = Counter((json.loads(event["body"]).get("turn"), event["type"]) for event in history.events)
    calls = Counter(call["turn"] for call in history.tool_calls)
    # The answer to a question is the result of the call that asked it, and is told as an answer.
    asked = {(each["turn"], each["attempt"], each["call"]) for each in history.questions}
    ended = Counter(
        call["turn"]
        for call in history.tool_calls
        if call["state"] == "finished" and (call["turn"], call["attempt"], call["call"]) not in asked
    )
    for turn in history.turns:
        assert calls[turn["id"]] == told[turn["id"], "tool.started"], f"{turn['id']}: calls and their story"
        assert ended[turn["id"]] == told[turn["id"], "tool.finished"], f"{turn['id']}: results"
    states = {turn["id"]: turn["state"] for turn in history.turns}
    for call in (call for call in history.tool_calls if call["state"] == "started"):
        assert states[call["turn"]] in ("running", "asking"), f"{call} is open for ever"
    waiting = Counter(question["turn"] for question in history.questions if question["state"] == "open")
    holding = {(each["turn"], "running") for each in history.questions if each["hold"]}
    for turn in history.turns:
        may_ask = turn["state"] == "asking" or (turn["id"], turn["state"]) in holding
        assert may_ask if waiting[turn["id"]] else turn["state"] != "asking", f"{turn['id']}: {turn['state']}"


def _check_sight(history: History, sight: Sight) -> None:
    """Nothing was told to a client that is not there, word for word, and nothing was told wrongly."""
    events = {event["seq"]: event for event in history.events if event["session"] == sight.session}
    for seen in sight.events:
        kept = events.get(seen.seq)
        assert kept is not None, f"{sight.session}: a client saw {seen}, which is not in the journal"
        assert (kept["type"], kept["at"]) == (seen.type, seen.at), f"{sight.session}: {kept} seen as {seen}"
        assert json.loads(kept["body"]) == seen.fields, f"{sight.session}: {kept} was seen as {seen}"
    messages = {each["key"]: each for each in history.messages if each["session"] == sight.session}
    for key, answer in sight.accepted.items():
        kept = messages.get(key)
        assert kept is not None, f"{sight.session}: {key} was accepted and is lost"
        assert (kept["id"], kept["seq"]) == (answer.message, answer.seq), f"{key}: {kept} told as {answer}"
