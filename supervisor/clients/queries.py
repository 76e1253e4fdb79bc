"""Queries: status, sessions, turns, workers, services, agents, in pages. They change nothing."""

import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ipc import messages as wire
from ipc.bounds import Number
from ipc.cpus import available_cpus
from ipc.paging import Placed, Row, key_of, listed, page, place
from supervisor import gateway_spec
from supervisor.clients import host_row
from supervisor.clients.readable_journal import ReadableJournal
from supervisor.clients.view_facts import Gauges, Host, TreeUsage
from supervisor.clock import Clock
from supervisor.config.derived import asked_models
from supervisor.config.live import Live
from supervisor.core import pool
from supervisor.core.state import Intake, Session, State, Worker, WorkerState
from supervisor.host.banner import own_version
from supervisor.journal.asking import Failed
from supervisor.telemetry import outage_rows


class Views:
    def __init__(
        self,
        *,
        state: State,
        clock: Clock,
        live: Live,
        journal: ReadableJournal,
        usages: Callable[[], Mapping[int, TreeUsage]],
        services: Callable[[], Sequence[Row]],
        agents: Callable[[], Sequence[Row]],
        other_hosts: Callable[[], Sequence[Row]],
        gauges: Gauges,
        host: Host,
    ) -> None:
        self._state = state
        self._clock = clock
        self._live = live
        self._asking = journal.asking
        self._wake_all = journal.wake_all
        self._running = journal.running
        self._tables = journal.tables
        self._past = journal.read
        self._hosts = journal.hosts
        self._usages = usages
        self._services = services
        self._agents = agents
        self._other_hosts = other_hosts
        self._gauges = gauges
        self._host = host

    def show(self, request: wire.Show, give: Callable[[wire.Table], None], failed: Failed) -> None:
        """Give a page of the requested table. BadPlace, when it cannot begin there, is raised or given."""

        def give_page(rows: Iterable[Placed]) -> None:
            give(page(rows, request.limit))

        own, ask = self._own_rows(request), self._asking.ask
        if own is not None:
            give_page(own)
        elif request.what == "status":
            ask(
                self._past.counts,
                lambda counts: give_page(self._status_row(request, counts)),
                lambda error: give_page(self._status_row(request, None, f"{error.fault}; {error.hint}")),
            )
        elif request.what == "sessions" and self._wake_all is not None:
            ask(lambda: self._read_sessions(request), lambda found: give_page(self._sessions(*found)), failed)
        elif request.what == "turns" and self._running is not None:
            ask(lambda: self._read_turns(request), lambda found: give_page(self._turns(*found)), failed)
        else:
            read = self._journal_rows
            ask(
                lambda: self._asking.rows(read(request), request.limit),
                lambda rows: give_page(self._shown(request, rows)),
                failed,
            )

    def _read_sessions(self, request: wire.Show) -> tuple[Sequence[Placed], Mapping[str, Session]]:
        """Read a page of sessions, and those of them that may be at another host, in a thread."""
        assert self._wake_all is not None
        rows = list(self._asking.rows(self._journal_rows(request), request.limit))
        return rows, self._wake_all([row["name"] for row, _ in rows if row is not None])

    def _read_turns(self, request: wire.Show) -> tuple[Sequence[Placed], Mapping[str, Row]]:
        """Read a page of turns, and where those run that do, in a thread."""
        assert self._running is not None
        rows = list(self._asking.rows(self._journal_rows(request), request.limit))
        return rows, self._running([row["id"] for row, _ in rows if row and row["state"] == "running"])

    def _own_rows(self, request: wire.Show) -> Iterator[Placed] | None:
        """Return the rows of a table that the journal has no part in."""
        match request.what:
            case "workers":
                return self._workers(request.after)
            case "services":
                return listed([*self._services(), *self._runtimes()], request.after)
            case "agents":
                return listed([row | self._models(row) for row in self._agents()], request.after)
            case "metrics":
                return listed(self._gauges.rows(), request.after)
            case "hosts" if self._hosts is None:
                return listed([host_row.alone(self._state, self._live.settings.hosts)], request.after)
        return None

    def _journal_rows(self, request: wire.Show) -> Iterator[Placed]:
        """Return the rows of the journal, which may be read by another thread than that of the state."""
        after, limit, tables = request.after, request.limit, self._tables
        match request.what:
            case "sessions" if request.prefix or request.words:
                return tables.found(request.prefix, request.words, after)
            case "sessions":
                return tables.sessions(after, limit)
            case "turns":
                return tables.turns(request.state, request.session, after, limit, request.prefix)
            case "questions":
                return tables.questions(after, limit, request.prefix)
            case "cursors":
                return tables.cursors(request.session, after, limit)
            case "history":
                return tables.history(request.session or "", after, limit)
            case "turn":
                return tables.turn(request.id, after)
            case "story":
                return tables.story(request.id, after)
            case "hosts" if self._hosts is not None:
                return listed(self._hosts(), after)
            case "output":
                return tables.tool_output(request.id, request.call, after)
        raise AssertionError(f"no table of the journal: {request.what}")

    def _shown(self, request: wire.Show, rows: Iterable[Placed]) -> Iterable[Placed]:
        """Return the rows with what the state adds to them."""
        match request.what:
            case "sessions":
                return self._sessions(rows)
            case "turns":
                return self._turns(rows)
            case "story":
                return self._story(rows)
        return rows

    def stand(self, session: str, name: str | None, then: Callable[[int, int], None], failed: Failed) -> None:
        """Give how many events the session has, and the cursor of that name; each 0 when there is none."""

        def read() -> tuple[int, int]:
            cursor = self._past.cursors(session).get(name, 0) if name else 0
            return self._past.session_seq(session), cursor

        self._asking.ask(read, lambda found: then(*found), failed)

    def queue(self, name: str, after: str, give: Callable[[wire.Table], None], failed: Failed) -> None:
        """Give a page of the messages that wait in a session, in order."""
        (seen,) = key_of(after, tuple[Number], (0,))

        def give_page(session: Session | None) -> None:
            give(page(_waiting(session, seen) if session else ()))

        session, wake_all = self._state.sessions.get(name), self._wake_all
        if session is not None or wake_all is None:
            give_page(session)
        else:
            self._asking.ask(lambda: wake_all([name]).get(name), give_page, failed)

    def _runtimes(self) -> Iterator[Row]:
        """Yield the runtimes other than the default one, an agent each, as services are shown."""
        for row in self._agents():
            if row["own_runtime"]:
                shown = {"service": f"agent {row['agent']}", "detail": row["fault"], "address": ""}
                kept = {key: row[key] for key in ("state", "pid", "hint")}
                yield shown | kept | {"restarts": None, "age_seconds": None}

    def _models(self, row: Row) -> Row:
        """Return the models that an agent asks; and why none of them answers, if it has no other fault."""
        names = list(asked_models(self._live.settings, row["agent"]))
        endpoints = self._state.policy.endpoints_of(row["agent"])
        away = [self._state.outages[each] for each in endpoints if each in self._state.outages]
        if row["fault"] or len(away) < len(endpoints):
            return {"models": names}
        return {"models": names, "fault": away[0].error, "hint": away[0].hint}

    def _status(self, counts: Mapping[str, int] | None, unread: str) -> Row:
        """Return all that is known without the journal, too: `unread` says why that has no counts."""
        state, host = self._state, self._host
        is_stuck = counts is None or host.trouble() is not None
        hints = [] if not unread or host.trouble() is not None else [f"the journal cannot be read: {unread}"]
        return {
            "version": own_version(),
            "pid": os.getpid(),
            "state": "stuck" if is_stuck else _state_of_the_service(state),
            "epoch": state.epoch,
            "uptime_seconds": self._clock.now() - host.started_at,
            "home": host.home,
            "host": self._live.settings.hosts.own_name,
            "other_hosts": self._other_hosts(),
            "model": host.model(),
            "cell": host.cell(),
            "gateway": self._gateway(),
            "seats": state.policy.busy_seats,
            "spares": pool.wanted(state) - state.policy.busy_seats,
            "cpus": available_cpus(),
            "draining": state.draining,
            "draining_since": state.intake_since if state.draining else None,
            "drain_seconds": self._live.settings.turns.drain_seconds,
            "idle": len(state.idle),
            "busy": len(state.busy),
            **{shown: _sum(counts, shown) for shown in ("queued", "running", "asking")},
            "questions": self._gauges.questions(),
            "waiting": state.waiting,
            "sessions_live": len(state.sessions),
            "turns_ended": _sum(counts, "done", "failed", "interrupted"),
            "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "waits_for": host.waits_for(),
            "totals": self._gauges.totals(),
            "lag_ms": host.health.lag_ms(),
            "late": host.health.late(),
            "outages": outage_rows.rows(state, self._clock.now()),
            "reserve": host.has_reserve(),
            "hints": host.hints() + hints,
        }

    def _gateway(self) -> Row | None:
        """Return the state of the gateway and the address of its console, empty until it is ready."""
        for row in self._services():
            if row["service"] == gateway_spec.NAME:
                address = row["address"] if row["state"] == "ready" else ""
                return {"state": row["state"], "console": self._live.settings.gateway.console(address)}
        return None

    def _status_row(
        self, request: wire.Show, counts: Mapping[str, int] | None, unread: str = ""
    ) -> Iterator[Placed]:
        """Yield the status; of a session that is named also its default busy mode."""
        name = request.session
        mode = {} if name is None else {"busy_mode": self._live.settings.for_session(name).busy}
        return listed([self._status(counts, unread) | mode], request.after)

    def _sessions(
        self, found: Iterable[Placed], elsewhere: Mapping[str, Session] | None = None
    ) -> Iterator[Placed]:
        """Yield the sessions of the journal, newest first; those not at rest have their activity."""
        for row, behind in found:
            if row is None:
                yield None, behind
                return
            shown = {
                "session": row["name"],
                "seq": row["seq"],
                "turns": row["turns"],
                "last_at": row["last_at"],
            }
            session = self._state.sessions.get(row["name"]) or (elsewhere or {}).get(row["name"])
            yield shown | _liveness(session), behind

    def _turns(self, found: Iterable[Placed], running: Mapping[str, Row] | None = None) -> Iterator[Placed]:
        """Yield the turns of the journal, newest first; one that runs has its place (of several hosts)."""
        for row, behind in found:
            if row is None:
                yield None, behind
                return
            shown = {key: value for key, value in row.items() if key != "id"}
            place = {"worker": None, "pid": None} | (running or {}).get(row["id"], {})
            yield {"turn": row["id"]} | shown | place | self._place(row["session"], row["id"]), behind

    def _place(self, session_name: str, turn_id: str) -> Row:
        """Return the worker that runs a turn here."""
        session = self._state.sessions.get(session_name)
        turn = session.turn if session else None
        if turn is None or turn.id != turn_id or turn.attempt is None:
            return {}
        # Not the seat that the attempt was opened in: what an earlier life left has another one.
        worker = self._state.workers[self._state.seat_of[session_name]]
        return {"worker": worker.seat, "pid": worker.pid or None}

    def _story(self, found: Iterable[Placed]) -> Iterator[Placed]:
        """Yield the journal's story; its first row also says which model or worker's end is waited for."""
        for row, behind in found:
            if row is not None and "type" not in row:
                row = row | {"waits": self._waits(row)}
            yield row, behind

    def _waits(self, row: Row) -> str:
        session = self._state.sessions.get(row["session"])
        turn = session.turn if session else None
        is_open = turn is not None and turn.id in (row["id"], row.get("turn"))
        if session is not None and (is_open or row["state"] == "waiting"):
            seat = self._state.seat_of.get(session.name)
            if seat in self._state.stuck:
                return f"it waits for the end of worker {seat}, {self._words(self._state.workers[seat])}"
        return outage_rows.of_turn(self._state, turn, self._clock.now()) if turn and is_open else ""

    def _workers(self, after: str) -> Iterator[Placed]:
        (skipped,) = key_of(after, tuple[Number], (0,))
        usages = self._usages()
        for seat, worker in sorted(self._state.workers.items()):
            if seat >= skipped:
                yield self._worker(worker, usages), place(seat + 1)

    def _worker(self, worker: Worker, usages: Mapping[int, TreeUsage]) -> Row:
        usage = usages.get(worker.incarnation)
        session = self._state.sessions.get(worker.session) if worker.session is not None else None
        return {
            "seat": worker.seat,
            "incarnation": worker.incarnation,
            "pid": worker.pid or None,
            "state": worker.state.value,
            "agent": worker.agent,
            "level": worker.level or None,
            "session": worker.session,
            "turn": worker.turn,
            "memory_bytes": usage.memory_bytes if usage else None,
            "cpu_percent": usage.cpu_percent if usage else None,
            "processes": usage.processes if usage else None,
            "age_seconds": self._clock.now() - worker.since,
            "turns": worker.turns,
            **self._signs_of_life(worker, session),
            "words": self._words(worker),
        }

    def _words(self, worker: Worker) -> str:
        if worker.stuck_since is None:
            return worker.words or str(worker.why or "")
        seconds = self._clock.now() - worker.stuck_since
        return f"ended, and not proved gone after {seconds:.0f} s: {worker.words}"

    def _signs_of_life(self, worker: Worker, session: Session | None) -> Row:
        """Return the seconds since each sign of life: the process, its loop, its progress."""
        now = self._clock.now()
        if worker.state not in (WorkerState.IDLE, WorkerState.BUSY):
            return {"process": None, "loop": None, "progress": None}
        attempt = session.turn.attempt if worker.turn and session and session.turn else None
        return {
            "process": round(now - worker.pulse_at, 1),
            "loop": round(now - worker.loop_at, 1),
            "progress": round(now - attempt.progress_at, 1) if attempt else None,
        }


def _state_of_the_service(state: State) -> str:
    return "ready" if state.intake is Intake.OPEN else state.intake.value


def _sum(counts: Mapping[str, int] | None, *states: str) -> int | None:
    return None if counts is None else sum(counts.get(each, 0) for each in states)


def _waiting(session: Session, seen: int) -> Iterator[Placed]:
    for message in session.waiting:
        if message.seq > seen:
            row = {
                "message": message.id,
                "kind": "voice" if message.clip else "text",
                "state": "transcribing" if message.is_transcribing else "waiting",
                "busy": message.busy.value,
                "at": message.at,
                "text": message.text,
                "held": bool(session.held),
            }
            yield row, place(message.seq)


def _liveness(session: Session | None) -> Row:
    if session is None or session.is_at_rest:
        return {"state": "at rest", "turn": None, "waiting": 0}
    turn = session.turn.id if session.turn else None
    return {"state": session.state, "turn": turn, "waiting": len(session.waiting)}


def in_short(state: State) -> str:
    """Return one sentence for `systemctl status`."""
    waiting = sum(len(session.waiting) for session in state.sessions.values())
    turns = sum(1 for session in state.sessions.values() if session.turn)
    running = len(state.busy)
    return (
        f"{len(state.sessions)} sessions live, {running} turns running, {turns - running} queued or asking, "
        f"{waiting} messages waiting; {len(state.idle)} workers idle"
    )
