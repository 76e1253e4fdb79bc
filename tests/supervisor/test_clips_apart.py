"""Clips that are no messages: their client gets the transcript, and nothing is left of them."""

from pathlib import Path

import pytest

from ipc.messages import Answer, Refused, Transcript
from supervisor.stt import transcription
from tests.supervisor.test_transcription import Heard, listening, run
from tests.waiting import soon

ENDS = [("nothing", "invalid"), ("again", "unavailable"), ("crash", "unavailable")]


def ask(heard: Heard, key: str, what: str) -> list[Answer]:
    """Stores a clip and asks for its transcript; the answers that come."""
    answers: list[Answer] = []
    (heard.folder / f"clip{key}").write_text(what)
    heard.hearing.transcribe_apart(f"clip{key}", key, answers.append)
    return answers


@pytest.mark.parametrize("what", ["words", "slow", "crash-once", "again-once"])
def test_a_transcript_is_given_to_its_client_and_nothing_is_recorded(tmp_path: Path, what: str) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            answers = ask(heard, "k", what)
            await soon(lambda: answers)
            assert answers == [Transcript("the words", "en", 3.0)]
            assert not (tmp_path / "clipk").exists()
            assert (heard.outcomes, heard.notes) == ([], [])

    run(story())


def test_of_a_long_clip_only_its_client_learns(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            answers = ask(heard, "k", "long")
            await soon(lambda: answers)
            assert answers == [Transcript("the first half and the second", "en", 60.0)]
            assert (heard.outcomes, heard.notes) == ([], [])

    run(story())


def test_a_clip_without_words_is_an_empty_transcript(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            answers = ask(heard, "k", "blank")
            await soon(lambda: answers)
            assert answers == [Transcript("", "en", 3.0)]

    run(story())


@pytest.mark.parametrize(("what", "code"), ENDS)
def test_a_clip_that_cannot_be_transcribed_is_refused_and_removed(
    tmp_path: Path, what: str, code: str
) -> None:
    async def story() -> None:
        async with listening(tmp_path) as heard:
            answers = ask(heard, "k", what)
            await soon(lambda: answers)
            (refused,) = answers
            assert isinstance(refused, Refused)
            assert refused.code == code
            assert "hermesctl retry" not in refused.hint
            assert not (tmp_path / "clipk").exists()
            assert heard.outcomes == []

    run(story())


def test_the_same_key_gets_the_same_transcript_and_others_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "_APART_MAX", 1)

    async def story() -> None:
        async with listening(tmp_path) as heard:
            first, again = ask(heard, "k", "slow"), ask(heard, "k", "slow")
            (refused,) = ask(heard, "other", "words")
            assert isinstance(refused, Refused)
            assert refused.code == "full"
            await soon(lambda: first)
            assert first == again == [Transcript("the words", "en", 3.0)]

    run(story())


def test_it_is_refused_at_once_where_voice_is_off_or_fails(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path, engine="off") as heard:
            (refused,) = ask(heard, "k", "words")
            assert isinstance(refused, Refused)
            assert (refused.error, refused.code) == ("voice is switched off", "unavailable")

    run(story())
