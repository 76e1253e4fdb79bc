"""The agent of kind acp against a small ACP agent: turns, tools, permissions and faults."""

import asyncio
from pathlib import Path

import pytest

from ipc.messages import (
    AgentSpec,
    Delta,
    Failed,
    Finished,
    Noted,
    PastAttempt,
    Setup,
    Steer,
    Steered,
    ToolFinished,
    ToolStarted,
    ToolTrace,
    Usage,
)
from tests.waiting import soon
from tests.worker.acp_host import Host, play
from tests.worker.acp_host import home as home
from tests.worker.acp_host import no_process_is_left as no_process_is_left
from tests.worker.test_attempt import Desk
from worker import residents
from worker.agents import acp, acp_connection


def test_a_turn_streams_and_ends_with_its_usage() -> None:
    async def scene(host: Host) -> None:
        end = await host.end("say hello world")
        assert end == Finished("s/1", 1, "hello world ", Usage(7, 5), "stop")

    play(scene)


def test_updates_keep_their_order() -> None:
    async def scene(host: Host) -> None:
        assert await host.said("burst 3000") == "".join(f"{number} " for number in range(3000))

    play(scene)


def test_a_process_answers_many_turns_in_one_session() -> None:
    async def scene(host: Host) -> None:
        await host.said("say one")
        (process,) = residents.pids()
        assert await host.said("recall") == "prompt 2, no record"
        assert residents.pids() == {process}

    play(scene)


def test_a_tool_is_recorded_with_its_arguments_and_class() -> None:
    async def scene(host: Host) -> None:
        frames = await host.turn("tool echo hi; exit 3")
        _, started, finished, _, end = frames
        assert isinstance(started, ToolStarted)
        assert (started.name, started.repeat, started.offset) == ("execute", "unsafe", len("before"))
        assert started.arguments == '{"command": "echo hi; exit 3"}'
        assert isinstance(finished, ToolFinished)
        assert (finished.ok, finished.result) == (False, "hi\n")
        assert isinstance(end, Finished)
        assert end.text == "before\n\nhi\n"

    play(scene)


def test_thoughts_are_counted_and_not_shown() -> None:
    async def scene(host: Host) -> None:
        notes = [frame.text for frame in await host.turn("think") if isinstance(frame, Noted)]
        assert notes == ["thinking… 16 characters", "plan: look [in_progress]"]

    play(scene)


def test_a_call_is_recorded_before_its_permission_is_answered() -> None:
    """No Ack, no answer: the agent does not go on."""

    async def scene(host: Host) -> None:
        host.desk = Desk(safe=lambda frame: not isinstance(frame, ToolStarted))
        turn = asyncio.create_task(host.turn("permit touch done"))
        await host.desk.until(lambda: "ToolStarted" in host.desk.kinds())
        assert not turn.done()
        assert "Delta" not in host.desk.kinds()
        host.desk.outbox.acknowledge(len(host.desk.frames))
        await turn
        assert host.desk.kinds().index("ToolStarted") < host.desk.kinds().index("Delta")

    play(scene)


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_tokens", "length"), ("refusal", "refusal"), ("cancelled", "cancelled")]
)
def test_a_stop_reason_becomes_the_finish(reason: str, finish: str) -> None:
    async def scene(host: Host) -> None:
        end = await host.end(f"stop {reason}")
        assert isinstance(end, Finished)
        assert end.finish == finish

    play(scene)


def test_a_crash_in_a_tool_is_tried_again_with_an_unknown_outcome() -> None:
    async def scene(host: Host) -> None:
        frames = await host.turn("die")
        end = frames[-1]
        assert isinstance(end, Failed)
        assert end.again
        assert end.error.startswith("the agent's process was ended by signal 9")
        assert not any(isinstance(frame, ToolFinished) for frame in frames)
        host.turns -= 1
        tool = ToolTrace("call_1", "execute", "{}", "unsafe", offset=9)
        tried = (PastAttempt("going to ", (tool,), "lost"),)
        assert await host.said("die", attempt=2, tried=tried) == "prompt 2, a record"

    play(scene)


@pytest.mark.parametrize("prompt", ["forever", "hang", "permit sh -c x"])
def test_a_cancelled_prompt_ends_its_attempt(prompt: str) -> None:
    """Also one that waits for a permission: the agent gets the outcome `cancelled`."""

    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn(prompt))
        await host.desk.until(lambda: bool({"Delta", "ToolStarted", "Asked"} & {*host.desk.kinds()}))
        host.attempt.cancel()
        host.attempt.cancel()
        end = (await turn)[-1]
        assert isinstance(end, Failed)
        assert end.error == "it was cancelled by an interrupt"

    play(scene, lambda: Host(otherwise="ask"))


def test_a_steer_waits_for_the_next_turn() -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("tool sleep 0.2"))
        await host.desk.until(lambda: "ToolStarted" in host.desk.kinds())
        host.attempt.steer(Steer("s/1", 1, "m_2", "and now?"))
        assert not any(isinstance(frame, Steered) for frame in await turn)

    play(scene)


def test_a_message_of_megabytes_is_read() -> None:
    async def scene(host: Host) -> None:
        assert (await host.said("huge")).strip() == "read"

    play(scene)


def test_updates_of_an_unknown_kind_reach_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    async def scene(host: Host) -> None:
        await host.said("think")

    play(scene)
    assert capfd.readouterr().err == ""


BAD = [
    ("exit", "exited with status 1, saying: no such model"),
    ("garbage", "printed text that is no JSON"),
    ("nonsense", "answered `initialize` with something else"),
    ("version", "speaks version 99 of the Agent Client Protocol"),
    ("sign-in", "needs a sign-in (Log in with a browser)"),
    ("silent", "did not answer `initialize` within"),
]


@pytest.mark.parametrize(("mode", "fault"), BAD)
def test_a_bad_agent_fails_the_turn_with_a_sentence(
    mode: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "silent":
        monkeypatch.setattr(acp_connection, "INITIALIZE_SECONDS_MAX", 0.5)

    async def scene(host: Host) -> None:
        end = await host.end("say hello")
        assert isinstance(end, Failed)
        assert fault in end.error
        assert end.hint
        assert not end.again

    play(scene, lambda: Host(mode))


def test_a_missing_program_is_named() -> None:
    async def scene(host: Host) -> None:
        host.spec = AgentSpec("coder", "acp", {"command": ["no-such-agent", "acp"]})
        end = await host.end("say hello")
        assert isinstance(end, Failed)
        assert end.error == "there is no program 'no-such-agent' in the agent's cell"

    play(scene)


@pytest.mark.parametrize("mode", ["slow", "chatter"])
def test_a_slow_or_talkative_start_is_waited_for(mode: str) -> None:
    async def scene(host: Host) -> None:
        assert await host.said("say hello") == "hello "

    play(scene, lambda: Host(mode))


def test_an_error_of_the_agent_is_quoted() -> None:
    async def scene(host: Host) -> None:
        end = await host.end("fail")
        assert isinstance(end, Failed)
        assert end.error == "the agent reported an error: the model is out of credit"

    play(scene)


def test_the_environment_of_the_settings_is_given() -> None:
    async def scene(host: Host) -> None:
        assert await host.said("env COLOUR") == "COLOUR=blue"

    play(scene, lambda: Host(env={"COLOUR": "blue"}))


def test_a_secret_of_the_turn_is_given_and_never_shown() -> None:
    async def scene(host: Host) -> None:
        host.secrets = {"TOKEN": "hush-hush"}
        assert await host.said("env TOKEN") == "TOKEN=hush-hush"
        end = await host.end("die")
        assert isinstance(end, Failed)
        assert end.error.endswith("saying: the disk is gone …")

    play(scene, lambda: Host(env_from=["TOKEN"]))


def test_an_agent_whose_home_is_covered_while_it_starts_is_started_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workspace is mounted at a spare's home with its first turn; a slow program still starts then."""
    monkeypatch.setattr(acp, "_SET_UP_SECONDS_MAX", 0.01)
    place = home / "place"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))

    async def scene(host: Host) -> None:
        await host.agent.set_up(Setup(host.spec, (), {}))
        await soon((place / ".acp_agent").exists)
        place.rename(home / "covered")
        place.mkdir()
        (place / "mounted").touch()
        assert await host.said("say hello") == "hello "
        assert len(residents.pids()) == 1

    play(scene, lambda: Host("housed"))


def test_a_call_that_is_announced_by_its_content_is_recorded() -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("announce"))
        await host.desk.until(lambda: any(isinstance(frame, ToolStarted) for frame in host.desk.frames))
        turn.cancel()
        await asyncio.wait({turn})
        await host.agent.close()

    play(scene)


def test_an_interrupted_stream_sends_its_text_at_once() -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("forever"))
        await host.desk.until(lambda: sum(isinstance(frame, Delta) for frame in host.desk.frames) > 3)
        turn.cancel()
        await asyncio.wait({turn})
        assert residents.pids() == frozenset()
        await host.agent.close()

    play(scene)
