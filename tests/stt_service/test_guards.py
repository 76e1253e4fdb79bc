"""Loops are cut, stock phrases are no words, missing ends are noticed; honest speech is left alone."""

import pytest

from stt_service.containers import cut_short, sniff
from stt_service.errors import CannotTranscribe
from stt_service.transcript_checks import (
    fits,
    is_doubtful,
    is_invented,
    overflows,
    repeats,
    without_loops,
    without_remarks,
)
from tests.stt_service.sounds import SAID


@pytest.mark.parametrize(
    ("looped", "once"),
    [
        ("no no no no no no", "no"),
        ("so I said, so I said, so I said, so I said, and left", "so I said, and left"),
        ("stop Stop. stop! stop stop now", "stop now"),
    ],
)
def test_a_phrase_that_follows_itself_is_said_once(looped: str, once: str) -> None:
    assert repeats(looped)
    assert without_loops(looped) == once


@pytest.mark.parametrize("text", [*SAID.values(), "no, no, no", "", "ha ha ha that was good"])
def test_speech_that_only_insists_is_left_alone(text: str) -> None:
    assert not repeats(text)
    assert without_loops(text) == text


def test_a_text_that_says_something_twice_is_noticed() -> None:
    assert repeats("and then we went to the sea and swam. " * 4)
    assert repeats(f"{SAID['cold_hearted']} {SAID['cold_hearted']}")


@pytest.mark.parametrize(
    ("text", "confidence", "silence"),
    [("", -0.1, 0.0), ("...", -0.1, 0.0), ("Thank you.", -0.9, 0.1), ("you", -0.2, 0.5), ("a b c", -1.7, 0.0),
     ("words about nothing", -1.1, 0.7)],
)  # fmt: skip
def test_what_says_nothing_of_the_clip_is_invented(text: str, confidence: float, silence: float) -> None:
    assert is_invented(text, confidence, silence)


def test_a_prompt_said_back_without_being_sure_is_invented() -> None:
    assert is_invented("A novel by Jane Austen.", -0.5, 0.0, "A novel by Jane Austen")
    assert not is_invented("A novel by Jane Austen.", -0.1, 0.0, "A novel by Jane Austen")


@pytest.mark.parametrize(
    ("text", "confidence"), [("Thank you.", -0.2), ("He was not an ill-disposed young man.", -0.4)]
)
def test_words_that_were_said_are_kept(text: str, confidence: float) -> None:
    assert not is_invented(text, confidence, 0.05)


def test_remarks_about_sounds_are_no_words() -> None:
    assert without_remarks("[MUSIC] Hello (applause) there ♪ la la ♪") == "Hello there"


def test_too_few_letters_for_so_much_speech_miss_an_end() -> None:
    assert not fits("And so my fellow", "en", 8.0)
    assert fits(SAID["ask_not"], "en", 8.0)
    assert fits("Stop", "en", 1.5)
    assert fits("我们明天去海边游泳吧", "zh", 4.5)
    # Each figure is a word.
    assert fits("1, 2, 3, 4, 5, 6", "en", 4.0)


def test_words_that_had_their_time_are_no_loop() -> None:
    assert not overflows("no, " * 12, "en", 5.0)
    assert not overflows(f"{SAID['ask_not']} " * 2, "en", 15.0)
    assert overflows("no, " * 200, "en", 5.0)
    assert overflows("19, " * 50, "en", 5.0)


def test_more_short_words_than_anybody_can_say_are_a_loop() -> None:
    assert overflows("no, " * 56, "en", 4.7)
    assert not overflows("no, " * 14, "en", 4.7)


def test_containers_are_told_by_their_bytes_alone() -> None:
    assert sniff(b"OggS" + bytes(30)).name == "ogg"
    assert sniff(b"\xff\xfb\x90\x00").name == "mp3"
    with pytest.raises(CannotTranscribe, match="a text"):
        sniff("ein Text mit Ümlauten".encode() * 40)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"RIFF\0\0\0\0WAVE", "wav"),
        (b"RF64\0\0\0\0WAVE", "wav"),
        (b"RIFF\0\0\0\0AVI ", None),
        (b"    \0\0\0\0WAVE", None),
        (b"\xff\xf1\x50\x80", "aac"),
        (b"\xff\xfb\x90\x00", "mp3"),
        # Too short, other bits, another layer, no rate.
        (b"\xff\xfb\x90", None),
        (b"\xfe\xfb\x90\x00", None),
        (b"\xff\x1b\x90\x00", None),
        (b"\xff\xfd\x90\x00", None),
        (b"\xff\xfb\xf0\x00", None),
        (b"\xff\xfb\x9c\x00", None),
        (b"\xff\xeb\x90\x00", None),
    ],
)
def test_sound_is_known_by_its_first_bytes_and_what_is_near_is_refused(
    content: bytes, name: str | None
) -> None:
    if name is not None:
        assert sniff(content).name == name
    else:
        with pytest.raises(CannotTranscribe):
            sniff(content)


def test_a_text_is_doubtful_when_it_repeats_itself_or_does_not_fit() -> None:
    assert not is_doubtful(SAID["ask_not"], "en", 8.0)
    assert is_doubtful("and then we go and then we go and then we go and then we go", "en", 6.0)
    assert is_doubtful("And so my fellow", "en", 8.0)


def test_a_second_beside_the_speech_is_granted() -> None:
    # Seven words a second and less are said; in a tenth of a second nobody says four.
    assert not overflows("no, yes", "en", 0.3)
    assert not overflows("a, b, c, d", "en", 0.1)


def test_a_container_that_ends_before_its_end_is_cautioned_about() -> None:
    missing = ("the end of the file is missing",)
    wav = b"RIFF" + (100).to_bytes(4, "little") + b"WAVE"
    assert cut_short(wav) == missing
    assert cut_short(wav.ljust(108, b"\0")) == ()
    # A recorder that wrote into a pipe did not know the size.
    assert cut_short(b"RIFF\xff\xff\xff\xffWAVE") == ()
    assert cut_short(b"OggS\0\x02" + bytes(20)) == missing
    assert cut_short(b"OggS\0\x02" + bytes(20) + b"OggS\0\x04") == ()
    assert cut_short(b"fLaC") == ()


def test_a_text_is_known_as_one_when_its_first_part_ends_within_a_character() -> None:
    with pytest.raises(CannotTranscribe, match="a text"):
        sniff(b"a" * 511 + "é".encode() + b"a" * 9)
    with pytest.raises(CannotTranscribe, match="of a kind unknown here"):
        sniff(b"a" * 300 + b"\xe9" + b"a" * 300)


@pytest.mark.parametrize(
    ("content", "file_name", "media_type"),
    [
        (b"OggS", "clip.ogg", "audio/ogg"),
        (b"RIFF\0\0\0\0WAVE", "clip.wav", "audio/wav"),
        (b"fLaC", "clip.flac", "audio/flac"),
        (b"\x1aE\xdf\xa3", "clip.webm", "audio/webm"),
        (b"\0\0\0\x18ftypM4A ", "clip.m4a", "audio/mp4"),
        (b"ID3\x04", "clip.mp3", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "clip.aac", "audio/aac"),
    ],
)
def test_a_server_is_given_the_name_and_the_type_of_what_a_clip_is(
    content: bytes, file_name: str, media_type: str
) -> None:
    kind = sniff(content)
    assert (kind.file_name, kind.media_type) == (file_name, media_type)


def test_a_decoder_that_loops_is_noticed_in_scripts_of_few_signs_too() -> None:
    """Ten seconds of Chinese have some fifty signs, of English two hundred letters."""
    assert not overflows("我们明天去海边游泳吧" * 6, "zh", 10.0)
    assert overflows("我们明天去海边游泳吧" * 20, "zh", 10.0)
    assert not overflows("tomorrow" * 25, "en", 10.0)


def test_a_doubtful_text_is_invented_only_where_silence_is_likely() -> None:
    assert not is_invented("words about something", -1.1, 0.1)
    assert not is_invented("words about something", -0.5, 0.7)
