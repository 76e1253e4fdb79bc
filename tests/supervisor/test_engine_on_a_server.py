"""The engine beside a journal on a server, which it asks before a batch, and again if there is no answer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from supervisor import engine as engine_module
from supervisor.clock import Clock
from supervisor.core import effects, events
from supervisor.core.policy import Policy
from supervisor.core.records import MessageAccepted
from supervisor.core.state import BusyMode
from supervisor.engine import Engine
from supervisor.event_queue import EventQueue
from supervisor.journal.errors import JournalError, JournalUnreachable
from supervisor.lookahead import Wanted
from tests.memory_journal import MemoryJournal
from tests.no_containment import uncontained
from tests.supervisor.test_engine import Performed
from tests.waiting import soon

AWAY = JournalUnreachable("the server does not answer", "look at it")
BROKEN = JournalError("the schema is another one", "restore it")


class Server(MemoryJournal):
    """A journal that is asked before a batch; the test answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Wanted, asyncio.Future[None]]] = []

    def ask(self, wanted: Wanted) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append((wanted, future))
        return future

    def answer(self, error: JournalError | None = None) -> None:
        _, future = self.asked[-1]
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


class Stage:
    """An engine beside a server that has not been asked yet."""

    def __init__(self) -> None:
        self.server = Server()
        self.done = Performed()
        self.fatal: list[BaseException] = []
        self.answers: list[effects.Answer] = []
        clock = Clock()
        self.engine = Engine(
            self.server.load(Policy()),
            EventQueue(clock.now),
            clock=clock,
            journal=self.server,
            outputs=self.done,
            contain=uncontained(),
            passing=lambda error: (AWAY.fault, AWAY.hint) if error is AWAY else None,
            fatal=self.fatal.append,
            ahead=self.server,
        )

    async def says(self, session: str) -> None:
        """A message of a session that the server is asked about."""
        before = len(self.server.asked)
        text = events.TextArrived(session, f"m_{session}", "k", "hello", BusyMode.QUEUE)
        self.engine.post(text, self.answers.append)
        await soon(lambda: len(self.server.asked) > before)


def play(act: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        await act(Stage())

    asyncio.run(run())


def test_a_server_that_does_not_answer_is_asked_again_and_the_loop_counts_as_turning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "RETRY_SECONDS", 0.001)

    async def act(stage: Stage) -> None:
        moved: list[bool] = []
        await stage.says("s")
        stage.engine.prove(lambda: moved.append(True))
        for times in (2, 3):
            stage.server.answer(AWAY)
            await soon(lambda count=times: len(stage.server.asked) == count)  # type: ignore[misc]
            assert moved == [True], "a restart would find the same"
            assert stage.engine.trouble is not None
            assert stage.engine.trouble.error == AWAY.fault
            assert stage.done.is_nothing
        stage.server.answer()
        await soon(lambda: stage.answers)
        assert stage.answers == [effects.Accepted("m_s", 1, again=False)]
        assert stage.engine.trouble is None
        assert not stage.fatal

    play(act)


def test_a_server_that_cannot_answer_for_good_ends_the_process() -> None:
    async def act(stage: Stage) -> None:
        await stage.says("s")
        stage.server.answer(BROKEN)
        await soon(lambda: stage.fatal)
        assert stage.fatal == [BROKEN]
        assert stage.done.is_nothing
        assert not stage.answers

    play(act)


def test_the_time_in_which_the_server_is_asked_is_that_of_a_commit() -> None:
    """An interrupt that waits behind the question is carried out when it takes long."""

    async def act(stage: Stage) -> None:
        await stage.says("s")
        await soon(lambda: stage.engine.commit_seconds > 0)
        stage.server.answer()
        await soon(lambda: stage.answers)
        assert stage.engine.committing_since is None

    play(act)


def test_a_batch_that_records_nothing_is_no_commit_though_the_server_was_asked() -> None:
    async def act(stage: Stage) -> None:
        await stage.says("s")
        stage.server.answer()
        await soon(lambda: stage.answers)
        assert stage.done.commits == [len(stage.done.published)]
        await stage.says("s")
        stage.server.answer()
        await soon(lambda: len(stage.answers) == 2)
        assert stage.answers[1] == effects.Accepted("m_s", 1, again=True)
        assert [type(record) for record in stage.done.published].count(MessageAccepted) == 1
        assert len(stage.done.commits) == 1

    play(act)


def test_a_halt_while_the_server_is_asked_waits_for_the_batch() -> None:
    async def act(stage: Stage) -> None:
        await stage.says("s")
        halting = asyncio.get_running_loop().create_task(stage.engine.halt())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not halting.done()
        stage.server.answer()
        await halting
        assert len(stage.answers) == 1

    play(act)
