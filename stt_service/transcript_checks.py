"""Checks the output of a model for doubtful text, loops and stock phrases.

A repetition that fits the duration may be real. It is therefore a reason to transcribe again, never a reason
to change the text; only words beyond what fits into the duration are removed.
"""

import re
import zlib

# A text with a higher compression ratio repeats itself; normal text compresses to about half at most.
PACKING_MAX = 2.4
# Shorter texts do not compress, whatever their content.
_PACKING_CHARACTERS_MIN = 40
# A phrase repeated more often in a row may come from the model and not from the person.
_REPEATS_MAX = 3
_PHRASE_WORDS_MAX = 12
# This many words in the same order twice are no accident.
_PHRASE_WORDS = 5
# Slow speakers produce about eight letters a second, fast ones twenty. Below half of eight an end may be
# missing.
_LETTERS_PER_SECOND_MIN = 4.0
_LETTERS_PER_SECOND_MAX = 25.0
# People are slower than this. A loop of short words has few letters.
_WORDS_PER_SECOND_MAX = 6.0
_SIGNS_PER_SECOND_MIN = 1.5
_SIGNS_PER_SECOND_MAX = 11.0
_SIGN_LANGUAGES = frozenset({"zh", "ja", "ko", "yue", "th", "lo", "my"})
_LETTERS_OF_A_DIGIT = 4
_JUDGED_SECONDS_MIN = 3.0
# A mean log probability of the tokens: clear audio has more than -0.5, guesses about noise less than -1.
UNSURE = -0.25
GUESS = -1.0
_WILD_GUESS = -1.6
_SILENCE = 0.6
# Phrases that the model's training data has at the end of films and between songs.
_STOCK_PHRASES = frozenset(
    {
        "you", "bye", "bye bye", "thank you", "thanks", "thank you very much", "thank you for watching",
        "thanks for watching", "thank you so much for watching", "please subscribe", "subscribe",
        "music", "applause", "silence", "the end", "oh", "so", "hmm", "mm", "uh", "ah",
    }
)  # fmt: skip
_STOCK_SURE = -0.6
_STOCK_SILENCE = 0.3
_BRACKETED = re.compile(r"\[[^\]]*\]|\([^)]*\)|♪[^♪]*♪?|\*[^*]*\*")


def without_remarks(text: str) -> str:
    """Removes the model's annotations of sounds: [MUSIC], (applause), ♪ … ♪."""
    return " ".join(_BRACKETED.sub(" ", text).split())


def repeats(text: str) -> bool:
    """True when the text repeats a phrase, whether the person or the model did."""
    packed = text.encode()
    if len(text) >= _PACKING_CHARACTERS_MIN and len(packed) / len(zlib.compress(packed)) > PACKING_MAX:
        return True
    words = _plain(text).split()
    phrases = [tuple(words[first : first + _PHRASE_WORDS]) for first in range(len(words) - _PHRASE_WORDS + 1)]
    return len(set(phrases)) < len(phrases) or without_loops(text) != text


def without_loops(text: str) -> str:
    """Reduces every phrase that follows itself more than three times to one occurrence."""
    words = text.split()
    kept: list[str] = []
    place = 0
    while place < len(words):
        length, times = _loop_at(words, place)
        kept += words[place : place + length]
        place += length * times
    return " ".join(kept)


def _loop_at(words: list[str], place: int) -> tuple[int, int]:
    """Returns (words in the phrase that starts here, number of repetitions to skip)."""
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


def is_doubtful(text: str, language: str, voiced_seconds: float) -> bool:
    """True when the text should be transcribed again: it repeats itself or does not fit the duration."""
    return repeats(text) or not fits(text, language, voiced_seconds)


def fits(text: str, language: str, voiced_seconds: float) -> bool:
    """True when the amount of text is plausible for the duration: less misses an end, more is a loop."""
    if voiced_seconds < _JUDGED_SECONDS_MIN:
        least = 0.0
    elif language in _SIGN_LANGUAGES:
        least = _SIGNS_PER_SECOND_MIN
    else:
        least = _LETTERS_PER_SECOND_MIN
    return _letters(text) >= least * voiced_seconds and not overflows(text, language, voiced_seconds)


def overflows(text: str, language: str, voiced_seconds: float) -> bool:
    """True when the text is too long for the duration: a looping decoder writes to the token limit."""
    most = _SIGNS_PER_SECOND_MAX if language in _SIGN_LANGUAGES else _LETTERS_PER_SECOND_MAX
    seconds = voiced_seconds + 1.0
    return _letters(text) > most * seconds or len(text.split()) > _WORDS_PER_SECOND_MAX * seconds


def _letters(text: str) -> int:
    return sum(_LETTERS_OF_A_DIGIT if sign.isdigit() else sign.isalnum() for sign in text)


def is_invented(text: str, confidence: float, silence_probability: float, prompt: str = "") -> bool:
    """True when the text comes from the model rather than from the clip."""
    words = _plain(text)
    if not words or confidence < _WILD_GUESS:
        return True
    if confidence < GUESS and silence_probability > _SILENCE:
        return True
    if words in _STOCK_PHRASES:
        return confidence < _STOCK_SURE or silence_probability > _STOCK_SILENCE
    return words == _plain(prompt) and confidence < UNSURE


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()))
