"""Tool calls of one reply run side by side in the whole service, and end together with their turn."""

import json
import os
import shlex
import signal
from collections.abc import Callable

from tests.fake_model import FakeModel
from tests.service import Listener, Service


def tools(*commands: str) -> str:
    calls = [{"name": "shell", "arguments": {"command": each, "timeout_seconds": 25}} for each in commands]
    return f"[[tools calls={shlex.quote(json.dumps([calls]).replace(']]', '] ]'))}]] work"


def meeting(mine: str, other: str) -> str:
    """Ends when the other has begun, in the workspace that both see."""
    return f"touch {mine}; until test -e {other}; do sleep 0.01; done; echo {mine}"


def both_run(listener: Listener) -> None:
    listener.until(lambda: len(listener.of_type("tool.started")) == 2)
    assert listener.of_type("tool.finished") == []


def results(model: FakeModel) -> list[str]:
    return [message["content"] for message in model.requests()[-1].messages if message["role"] == "tool"]


def test_two_commands_that_wait_for_each_other_are_answered(service: Service, model: FakeModel) -> None:
    sent = service.hermesctl("send", "demo", tools(meeting("one", "two"), meeting("two", "one")))
    assert (sent.returncode, sent.stdout) == (0, "Done.\n")
    assert results(model) == ["[exit status 0]\none\n", "[exit status 0]\ntwo\n"]
    shown = [line for line in sent.stderr.splitlines() if "shell done in" in line]
    assert sorted(line.partition(" ms: ")[2][:10] for line in shown) == ["command: t", "command: t"]
    listener = service.listen("demo")
    listener.ending("demo/1")
    order = [event.type for event in listener.of_type("tool.started", "tool.finished")]
    assert order == ["tool.started"] * 2 + ["tool.finished"] * 2


def test_an_interrupt_ends_all_that_run_side_by_side(service: Service) -> None:
    listener = service.listen("demo")
    service.say("demo", tools("echo runs; exec sleep 600", "echo runs; exec sleep 601"))
    listener.until(lambda: listener.notes.count("runs") == 2)
    service.interrupt("demo")
    killed = listener.ending("demo/1").fields["killed"]
    assert killed["all_dead"]
    assert killed["processes"] >= 3, "the worker and its two commands"


def test_d6_calls_that_a_crash_cut_off_side_by_side_are_both_of_unknown_outcome(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1")
    listener = service.listen("demo")
    service.say("demo", tools("exec sleep 600", "exec sleep 601"))
    both_run(listener)
    os.kill(listener.of_type("attempt.opened")[0].fields["pid"], signal.SIGKILL)
    assert listener.ending("demo/1").type == "turn.done"
    assert [result.partition(":")[0] for result in results(model)] == ["outcome unknown"] * 2
    calls = [call["id"] for each in model.requests()[-1].messages for call in each.get("tool_calls", ())]
    assert len(calls) == len(set(calls)) == 2
