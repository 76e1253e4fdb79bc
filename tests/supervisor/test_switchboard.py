"""Frames and events that share their words must not drift apart."""

from dataclasses import fields

import pytest

from supervisor import switchboard


@pytest.mark.parametrize(("frame", "event"), switchboard._SAME_WORDS.items())
def test_a_frame_and_its_event_have_the_same_words_in_the_same_order(frame: type, event: type) -> None:
    assert ("who", *frame.__struct_fields__) == tuple(each.name for each in fields(event))  # type: ignore[attr-defined]
