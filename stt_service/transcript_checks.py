"""Judges what a model says it heard: doubtful texts, loops, stock phrases.

Words that had their time were said, however often. So a repetition alone is a reason to listen again and
never a reason to change the text; only words that nobody could have said in that time are cut.
"""

import re
import zlib

# A text that packs better than this repeats itself; speech packs to about half at most.
PACKING_MAX = 2.4
# Shorter texts do not pack, whatever they say.
_PACKING_CHARACTERS_MIN = 40
# Said more often in a row, a phrase may be the model's and not the speaker's.
_REPEATS_MAX = 3
_PHRASE_WORDS_MAX = 12
# So many words in the same order twice are no accident.
_PHRASE_WORDS = 5
# Slow speech has about eight letters a second, fast speech twenty. With half of eight an end may be missing.
_LETTERS_PER_SECOND_MIN = 4.0
_LETTERS_PER_SECOND_MAX = 25.0
# Nobody speaks faster. A loop of short words has few letters.
_WORDS_PER_SECOND_MAX = 6.0
_SIGNS_PER_SECOND_MIN = 1.5
_SIGNS_PER_SECOND_MAX = 11.0
_SIGN_LANGUAGES = frozenset({"zh", "ja", "ko", "yue", "th", "lo", "my"})
_LETTERS_OF_A_DIGIT = 4
_JUDGED_SECONDS_MIN = 3.0
# A mean logarithm of the tokens' probabilities: speech has more than -0.5, guesses about noise less than -1.
UNSURE = -0.25
GUESS = -1.0
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
    """Whether the text says something again, be it the speaker's doing or the model's."""
    packed = text.encode()
    if len(text) >= _PACKING_CHARACTERS_MIN and len(packed) / len(zlib.compress(packed)) > PACKING_MAX:
        return True
    words = _plain(text).split()
    phrases = [tuple(words[first : first + _PHRASE_WORDS]) for first in range(len(words) - _PHRASE_WORDS + 1)]
    return len(set(phrases)) < len(phrases) or without_loops(text) != text


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


def is_doubtful(text: str, language: str, spoken_seconds: float) -> bool:
    """Whether to listen again: people repeat themselves, and so does a decoder in a loop."""
    return repeats(text) or not fits(text, language, spoken_seconds)


def fits(text: str, language: str, spoken_seconds: float) -> bool:
    """Whether that much can be said in so much speech: less misses an end, more is a loop."""
    if spoken_seconds < _JUDGED_SECONDS_MIN:
        least = 0.0
    elif language in _SIGN_LANGUAGES:
        least = _SIGNS_PER_SECOND_MIN
    else:
        least = _LETTERS_PER_SECOND_MIN
    return _letters(text) >= least * spoken_seconds and not overflows(text, language, spoken_seconds)


def overflows(text: str, language: str, spoken_seconds: float) -> bool:
    """Whether nobody can say so much in that time: a loop writes until it has no more room."""
    most = _SIGNS_PER_SECOND_MAX if language in _SIGN_LANGUAGES else _LETTERS_PER_SECOND_MAX
    seconds = spoken_seconds + 1.0
    return _letters(text) > most * seconds or len(text.split()) > _WORDS_PER_SECOND_MAX * seconds


def _letters(text: str) -> int:
    return sum(_LETTERS_OF_A_DIGIT if sign.isdigit() else sign.isalnum() for sign in text)


def is_invented(text: str, confidence: float, no_speech: float, prompt: str = "") -> bool:
    """Whether the text says more about the model than about the clip."""
    said = _plain(text)
    if not said or confidence < _WILD_GUESS:
        return True
    if confidence < GUESS and no_speech > _NO_SPEECH:
        return True
    if said in _STOCK_PHRASES:
        return confidence < _STOCK_SURE or no_speech > _STOCK_NO_SPEECH
    return said == _plain(prompt) and confidence < UNSURE


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()))
