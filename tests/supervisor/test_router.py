"""Frames and events that share their words must not drift apart."""

from dataclasses import fields

import msgspec
import pytest

from ipc import messages as wire
from supervisor.workers import router


@pytest.mark.parametrize(("frame", "event"), router._SAME_WORDS.items())
def test_a_frame_and_its_event_have_the_same_words_in_the_same_order(frame: type, event: type) -> None:
    words = tuple(each.name for each in fields(event))
    frame_words = (each.name for each in msgspec.structs.fields(frame))
    spent = tuple(each.name for each in msgspec.structs.fields(wire.Usage))
    flat = (name for word in frame_words for name in (spent if word == "usage" else (word,)))
    assert words == ("who", *flat)
