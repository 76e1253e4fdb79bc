"""The bound of one answer: whatever a server streams counts, under whichever name."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from worker.model_answer import Assembly
from worker.model_faults import Misbehaviour


def chunk(**delta: Any) -> SimpleNamespace:
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(**delta), finish_reason=None)])


def call(name: str, arguments: str) -> SimpleNamespace:
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(id="c", index=0, function=function)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x" * 6},
        {"refusal": "x" * 6},
        {"reasoning_content": "x" * 6},
        {"thinking": "x" * 6},
        {"tool_calls": [call("", "x" * 6)]},
        {"tool_calls": [call("x" * 6, "")]},
    ],
    ids=["text", "refusal", "reasoning", "thinking", "arguments", "name"],
)
def test_an_answer_that_never_ends_is_ended_whatever_it_consists_of(delta: Mapping[str, Any]) -> None:
    assembly = Assembly(11)
    assembly.take(chunk(**delta))
    with pytest.raises(Misbehaviour):
        assembly.take(chunk(**delta))
