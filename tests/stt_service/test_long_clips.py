"""What is said again is heard again, and pauses cost no words."""

import pytest

from tests.stt_service.conftest import Listen
from tests.stt_service.hearer import Hearer
from tests.stt_service.long_clips import LongClip, counted, repeated, with_pauses
from tests.stt_service.test_hearing import heard
from tests.stt_service.wording import errors


def assert_understood(listen: Listen, clip: LongClip, errors_max: int = 0) -> None:
    async def story(hearer: Hearer) -> None:
        answer = await heard(hearer, clip.content)
        assert errors(clip.said, answer.text) <= errors_max, answer.text

    listen(story)


@pytest.mark.parametrize(("name", "times"), [("ask_not", 2), ("ask_not", 5), ("amiable_himself", 5)])
def test_a_sentence_said_again_is_heard_as_often(listen: Listen, name: str, times: int) -> None:
    assert_understood(listen, repeated(name, times))


def test_a_long_pause_costs_no_sentence(listen: Listen) -> None:
    # The library's defaults mistake two words of the mumbled last sentence.
    clip = with_pauses(("ask_not", "more_amiable", "young_man"), 5.0)
    assert_understood(listen, clip, errors_max=2)


def test_counting_again_and_again_is_no_loop(listen: Listen) -> None:
    assert_understood(listen, counted(3, 0.5))


def test_sentences_close_together_are_understood_by_each_other(listen: Listen) -> None:
    assert_understood(listen, with_pauses(("leisure", "young_man", "cold_hearted"), 0.3))
