"""Events carry nothing into a decision that no journal can hold."""

import pytest

from supervisor.core.events import Failed, Finished, TextArrived, WorkerUnreachable
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import BusyMode, Who
from supervisor.core.storable import holdable

WHO = Who(1, 0, 7)


def test_an_event_that_can_be_held_is_left_as_it_is() -> None:
    event = Finished(WHO, "s/1", 1, "größer \U0001f600", 2**63 - 1, 0)
    assert holdable(event) is event


def test_half_characters_become_question_marks() -> None:
    held = holdable(Failed(WHO, "s/1", 1, "no file caf\udce9", "look at \ud83d", again=False))
    assert held == Failed(WHO, "s/1", 1, "no file caf?", "look at ?", again=False)


def test_half_characters_in_a_reason_become_question_marks() -> None:
    held = holdable(WorkerUnreachable(WHO, Reason(EndReason.NO_WORKSPACE, "no folder caf\udce9")))
    assert held == WorkerUnreachable(WHO, Reason(EndReason.NO_WORKSPACE, "no folder caf?"))


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**5000], ids=["above", "below", "5000 digits"])
def test_a_number_of_more_than_63_bits_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        holdable(Finished(WHO, "s/1", 1, "text", number, 0))


def test_a_message_is_checked_like_any_event() -> None:
    held = holdable(TextArrived("s", "m1", "key", "half \ud800", BusyMode.QUEUE))
    assert held.text == "half ?"
