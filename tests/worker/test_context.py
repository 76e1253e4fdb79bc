"""The contract with foreign agents: calls from threads, as the frames that a supervisor gets."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from functools import partial

import pytest

from ipc.errors import WireError
from ipc.messages import (
    Answered,
    Asked,
    Assign,
    Delta,
    Failed,
    Finished,
    Noted,
    PastAnswer,
    PastAttempt,
    PastTurn,
    Steer,
    Steered,
    ToolFinished,
    ToolStarted,
    ToolTrace,
    Usage,
)
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.context import AsyncContext, Context, ContextClosed, Host
from worker.attempt import Answer, Attempt
from worker.errors import AgentError

NOWHERE = "http://127.0.0.1:1/v1"


async def in_thread(attempt: Attempt, act: Callable[[Context], None], kept: list[Context]) -> str:
    """An agent in a thread of its own; the attempt ends with it, or earlier."""
    host = Host(attempt)
    kept.append(Context(host))
    ended = asyncio.get_running_loop().run_in_executor(None, act, kept[0])
    await asyncio.wait((ended, host.ending), return_when=asyncio.FIRST_COMPLETED)
    try:
        if host.ending.done():
            host.ending.result()
        await ended
    finally:
        host.close()
    return "stop"


def play(act: Callable[[Context], None], work: Assign | None = None) -> tuple[Desk, Context]:
    kept: list[Context] = []

    async def scene() -> Desk:
        desk = Desk()
        attempt = Attempt(work or assign(NOWHERE), desk.outbox)
        attempt.steer(Steer("s/1", 1, "m_2", "a steer"))
        await attempt.run(lambda attempt: in_thread(attempt, act, kept))
        return desk

    return asyncio.run(scene()), kept[0]


def abandoned(act: Callable[[Context], None], context: Context) -> None:
    """A thread that its attempt does not wait for: the test's loop ends it; in a worker the process ends."""
    with contextlib.suppress(concurrent.futures.CancelledError):
        act(context)


def test_calls_of_a_thread_are_frames_in_their_order() -> None:
    def act(context: Context) -> None:
        context.say("I look. ")
        context.note("looking")
        call = context.tool_started("lamp", {"on": True}, repeat="idempotent")
        context.tool_finished(call, "it shines", True)
        assert context.steers() == ["a steer"]
        context.spend(3, 4)
        context.say("It shines.")

    frames = play(act)[0].frames
    assert [type(frame) for frame in frames] == [
        Delta, Noted, ToolStarted, ToolFinished, Steered, Delta, Finished,
    ]  # fmt: skip
    started, finished, end = frames[2], frames[3], frames[-1]
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert (started.name, started.arguments, started.repeat, started.offset) == (
        "lamp", '{"on": true}', "idempotent", 8,
    )  # fmt: skip
    assert (finished.call, finished.result, finished.ok) == (started.call, "it shines", True)
    assert end == Finished("s/1", 1, "I look. It shines.", Usage(3, 4))


def test_a_tool_may_run_only_when_its_record_is_durable() -> None:
    async def scene() -> None:
        desk, begun = Desk(lambda frame: not isinstance(frame, ToolStarted)), threading.Event()

        def act(context: Context) -> None:
            call = context.tool_started("lamp")
            begun.set()
            context.tool_finished(call)
            context.say("Done.")

        running = asyncio.create_task(
            Attempt(assign(NOWHERE), desk.outbox).run(lambda attempt: in_thread(attempt, act, []))
        )
        await desk.until(lambda: desk.kinds() == ["ToolStarted"])
        assert not await asyncio.to_thread(begun.wait, 0.1)
        desk.outbox.acknowledge(1)
        await running
        assert desk.kinds() == ["ToolStarted", "ToolFinished", "Delta", "Finished"]

    asyncio.run(scene())


def test_a_call_after_the_end_raises_and_has_no_effect() -> None:
    desk, context = play(lambda context: context.say("All."))
    for late in (
        lambda: context.say("late"),
        lambda: context.note("late"),
        lambda: context.tool_started("late"),
        lambda: context.tool_finished("call_1_1"),
        lambda: context.ask("late?"),
        lambda: context.approve("late?"),
        context.steers,
        lambda: context.spend(1, 1),
    ):
        with pytest.raises(ContextClosed, match="over"):
            late()
    assert desk.kinds() == ["Delta", "Finished"]


def test_a_wrong_call_raises_in_the_agent_and_the_turn_goes_on() -> None:
    def act(context: Context) -> None:
        for wrong in (
            lambda: context.say(b"bytes"),  # type: ignore[arg-type]
            lambda: context.note(None),  # type: ignore[arg-type]
            lambda: context.tool_started(""),
            lambda: context.tool_started("x" * 201),
            lambda: context.tool_started("lamp", {"on": object()}),
            lambda: context.tool_started("lamp", repeat="often"),  # type: ignore[arg-type]
            lambda: context.tool_finished("call_9_9"),
            lambda: context.ask(" "),
            lambda: context.ask("Which?", "red"),
            lambda: context.ask("Which?", ["c"] * 21),
            lambda: context.spend(-1, 0),
        ):
            with pytest.raises((TypeError, ValueError)):
                wrong()
        context.say("Still here.")

    assert play(act)[0].kinds() == ["Delta", "Finished"]


def test_what_ends_the_attempt_cannot_be_caught_by_the_agent() -> None:
    seen: list[str] = []
    stop = threading.Event()

    def act(context: Context) -> None:
        threading.Thread(target=abandoned, args=(speak, context), daemon=True).start()
        stop.wait()

    def speak(context: Context) -> None:
        try:
            while True:
                context.say("x" * 300_000)
        finally:
            seen.append("it was let out")

    async def scene() -> Desk:
        desk = Desk()
        await Attempt(assign(NOWHERE), desk.outbox).run(lambda attempt: in_thread(attempt, act, []))
        assert seen == []
        stop.set()
        return desk

    end = asyncio.run(scene()).last()
    assert isinstance(end, Failed)
    assert "grew past" in end.error


def test_a_question_holds_the_attempt_and_its_answer_is_found_by_the_next() -> None:
    def act(context: Context) -> None:
        context.say(context.ask("Which colour?", ["red", "blue"]))
        context.say(f" {context.approve('Paint it?')}")

    async def scene() -> Desk:
        desk = Desk()
        attempt = Attempt(assign(NOWHERE), desk.outbox)
        running = asyncio.create_task(attempt.run(lambda attempt: in_thread(attempt, act, [])))
        await desk.until(lambda: desk.kinds() == ["Asked"])
        attempt.answered(Answered("s/1", 1, "s/1#1", 1, "blue"))
        await desk.until(lambda: desk.kinds()[-1] == "Asked" and len(desk.frames) > 1)
        attempt.answered(Answered("s/1", 1, "s/1#2", 2, "no"))
        await running
        return desk

    desk = asyncio.run(scene())
    asked = [frame for frame in desk.frames if isinstance(frame, Asked)]
    assert asked == [
        Asked("s/1", 1, "", "clarify", "Which colour?", ("red", "blue"), hold=1),
        Asked("s/1", 1, "", "approve", "Paint it?", ("yes", "no"), hold=2),
    ]
    assert desk.last() == Finished("s/1", 1, "blue False")

    answers = (PastAnswer("clarify", "Which colour?", "blue"), PastAnswer("approve", "Paint it?", "yes"))
    desk, _ = play(act, assign(NOWHERE, attempt=2, answers=answers))
    assert desk.last() == Finished("s/1", 2, "blue True")


def test_the_past_is_there_with_its_tools() -> None:
    done = ToolTrace("c1", "lamp", "{}", "unsafe", "it shines", True)
    lost = ToolTrace("c2", "lamp", "{}", "unsafe")
    seen: list[Context] = []
    work = assign(
        NOWHERE,
        "and now?",
        attempt=2,
        history=(PastTurn(("hello",), (PastAttempt("It ", (done,), "lost"), PastAttempt("shines."))),),
        tried=(PastAttempt("So far", (lost,), "lost"),),
    )

    def act(context: Context) -> None:
        seen.append(context)
        context.say(".")

    play(act, work)
    (context,) = seen
    assert (context.session, context.turn, context.attempt) == ("s", "s/1", 2)
    assert (context.messages, context.text) == (("and now?",), "and now?")
    (turn,) = context.history
    assert (turn.messages, turn.answer, turn.cut) == (("hello",), "It shines.", "")
    assert [(tool.name, tool.result, tool.ok) for tool in turn.tools] == [("lamp", "it shines", True)]
    (earlier,) = context.earlier
    assert earlier.text == "So far"
    assert [(tool.name, tool.result) for tool in earlier.tools] == [("lamp", None)]


def test_the_same_calls_can_be_awaited_in_any_loop() -> None:
    async def agent(context: AsyncContext) -> None:
        await context.say("I look. ")
        call = await context.tool_started("lamp")
        await context.tool_finished(call, "it shines")
        await asyncio.to_thread(context.in_threads.say, "It ")
        assert await context.steers() == ["a steer"]
        await context.spend(1, 2)
        await context.note("nearly")
        await context.say("shines.")

    async def in_this_loop(attempt: Attempt) -> str:
        host = Host(attempt)
        await agent(AsyncContext(host))
        host.close()
        return "stop"

    async def in_its_own_loop(attempt: Attempt) -> str:
        host = Host(attempt)
        await asyncio.to_thread(lambda: asyncio.run(agent(AsyncContext(host))))
        host.close()
        return "stop"

    async def scene(answer: Answer) -> Desk:
        desk = Desk()
        attempt = Attempt(assign(NOWHERE), desk.outbox)
        attempt.steer(Steer("s/1", 1, "m_2", "a steer"))
        await attempt.run(answer)
        return desk

    for answer in (in_this_loop, in_its_own_loop):
        assert asyncio.run(scene(answer)).last() == Finished("s/1", 1, "I look. It shines.", Usage(1, 2))


def test_a_blocking_call_in_the_workers_own_loop_is_refused() -> None:
    async def answer(attempt: Attempt) -> str:
        host = Host(attempt)
        with pytest.raises(RuntimeError, match="another thread"):
            Context(host).say("x")
        host.close()
        return "stop"

    async def scene() -> Desk:
        desk = Desk()
        await Attempt(assign(NOWHERE), desk.outbox).run(answer)
        return desk

    assert asyncio.run(scene()).kinds() == ["Finished"]


def test_a_call_that_is_under_way_when_the_turn_ends_has_no_effect() -> None:
    async def scene() -> Desk:
        desk = Desk()
        host = Host(Attempt(assign(NOWHERE), desk.outbox))
        late = host.submit(lambda: host.say("late"))
        host.close()
        with pytest.raises(ContextClosed):
            await asyncio.wrap_future(late)
        return desk

    assert asyncio.run(scene()).kinds() == []


def test_the_first_of_two_calls_that_end_the_attempt_says_why() -> None:
    """The other one does not return either."""

    async def scene() -> None:
        host = Host(Attempt(assign(NOWHERE), Desk().outbox))

        async def fail(why: str) -> None:
            raise AgentError(why, "")

        calls = [asyncio.wrap_future(host.submit(partial(fail, why))) for why in ("first", "second")]
        await asyncio.wait((host.ending,))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(call.done() for call in calls)
        with pytest.raises(AgentError, match="first"):
            await host.ending
        host.close()
        for call in calls:
            call.cancel()

    asyncio.run(scene())


def test_a_value_that_no_frame_can_carry_ends_the_attempt() -> None:
    async def scene() -> None:
        host = Host(Attempt(assign(NOWHERE), Desk().outbox))
        call = asyncio.wrap_future(host.submit(lambda: host.tool_started("lamp", "x" * 2_000_000, "pure")))
        await asyncio.wait((call, host.ending), return_when=asyncio.FIRST_COMPLETED)
        assert host.ending.done()
        with pytest.raises(WireError):
            await host.ending
        host.close()
        call.cancel()

    asyncio.run(scene())


def test_the_result_of_a_tool_is_recorded_once() -> None:
    def act(context: Context) -> None:
        call = context.tool_started("lamp")
        context.tool_finished(call, "it shines")
        with pytest.raises(ValueError, match="is running"):
            context.tool_finished(call, "it is dark")
        context.say("Done.")

    assert play(act)[0].kinds() == ["ToolStarted", "ToolFinished", "Delta", "Finished"]


def test_a_refused_call_that_is_made_again_and_again_is_asked_about() -> None:
    async def scene() -> Desk:
        desk = Desk()
        host = Host(Attempt(assign(NOWHERE), desk.outbox))
        calls = [asyncio.create_task(host.refuse("lamp", "{}", "pure", "no")) for _ in range(3)]
        await desk.until(lambda: "Asked" in desk.kinds())
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        return desk

    assert asyncio.run(scene()).kinds().count("ToolStarted") == 2
