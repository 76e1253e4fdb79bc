"""Judges what a model says it heard: loops are cut, stock phrases are no words, missing ends are noticed."""

import re
import zlib

# A text that packs better than this repeats itself; speech packs to about half at most.
_PACKING_MAX = 2.4
# Shorter texts do not pack, whatever they say.
_PACKING_CHARACTERS_MIN = 40
# Said this often in a row, a phrase is the model's and no longer the speaker's.
_REPEATS_MAX = 3
_PHRASE_WORDS_MAX = 12
# Slow speech has about eight letters a second; below half of that the end may be missing.
_LETTERS_PER_SECOND_MIN = 4.0
_SIGNS_PER_SECOND_MIN = 1.5
_SIGN_LANGUAGES = frozenset({"zh", "ja", "ko", "yue", "th", "lo", "my"})
_JUDGED_SECONDS_MIN = 4.0
# A mean logarithm of the tokens' probabilities: speech has more than -0.5, guesses about noise less than -1.
UNSURE = -0.25
_GUESS = -1.0
_WILD_GUESS = -1.6
_NO_SPEECH = 0.6
# What the model's training has at the end of films and between songs.
_STOCK_PHRASES = frozenset(
    {
        "you", "bye", "bye bye", "thank you", "thanks", "thank you very much", "thank you for watching",
        "thanks for watching", "thank you so much for watching", "please subscribe", "subscribe",
        "music", "applause", "silence", "the end", "oh", "so", "hmm", "mm", "uh", "ah",
    }
)  # fmt: skip
_STOCK_SURE = -0.6
_STOCK_NO_SPEECH = 0.3
_BRACKETED = re.compile(r"\[[^\]]*\]|\([^)]*\)|♪[^♪]*♪?|\*[^*]*\*")


def without_remarks(text: str) -> str:
    """Without what the model adds about sounds: [MUSIC], (applause), ♪ … ♪."""
    return " ".join(_BRACKETED.sub(" ", text).split())


def repeats(text: str) -> bool:
    """Whether the text goes round in circles."""
    packed = text.encode()
    if len(text) >= _PACKING_CHARACTERS_MIN and len(packed) / len(zlib.compress(packed)) > _PACKING_MAX:
        return True
    return without_loops(text) != text


def without_loops(text: str) -> str:
    """Every phrase that follows itself more than three times is said once."""
    words = text.split()
    kept: list[str] = []
    place = 0
    while place < len(words):
        length, times = _loop_at(words, place)
        kept += words[place : place + length]
        place += length * times
    return " ".join(kept)


def _loop_at(words: list[str], place: int) -> tuple[int, int]:
    """(words in the phrase that starts here, how often to skip over it)."""
    for length in range(1, _PHRASE_WORDS_MAX + 1):
        phrase = [_plain(word) for word in words[place : place + length]]
        times = 1
        while phrase == [
            _plain(word) for word in words[place + length * times : place + length * (times + 1)]
        ]:
            times += 1
        if times > _REPEATS_MAX:
            return length, times
    return 1, 1


def ends_early(text: str, language: str, voiced_seconds: float) -> bool:
    """Whether there are too few letters for so much speech."""
    least = _SIGNS_PER_SECOND_MIN if language in _SIGN_LANGUAGES else _LETTERS_PER_SECOND_MIN
    letters = sum(character.isalnum() for character in text)
    return voiced_seconds >= _JUDGED_SECONDS_MIN and letters < least * voiced_seconds


def is_invented(text: str, confidence: float, no_speech: float, prompt: str = "") -> bool:
    """Whether the text says more about the model than about the clip."""
    said = _plain(text)
    if not said or confidence < _WILD_GUESS:
        return True
    if confidence < _GUESS and no_speech > _NO_SPEECH:
        return True
    if said in _STOCK_PHRASES:
        return confidence < _STOCK_SURE or no_speech > _STOCK_NO_SPEECH
    return said == _plain(prompt) and confidence < UNSURE


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()))
