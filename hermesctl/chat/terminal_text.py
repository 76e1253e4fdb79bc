"""The last gate before the terminal: text that cannot command it and whose width every terminal agrees on."""

import re

from hermesctl.neutral import neutral

# Selectors of a form (U+FE0E, U+FE0F) change the width of an emoji in some terminals and in others not,
# and then whole lines are drawn in the wrong place; so do the implicit marks of directions.
_UNSTEADY = re.compile("[\ufe0e\ufe0f\u061c\u200e\u200f]")
# A joiner makes one sign of several emoji where the font knows it, and several where it does not.
_JOINED_EMOJI = re.compile("(?<=[\U0001f000-\U0001faff\u2600-\u27bf])\u200d")


def steady(text: str) -> str:
    if text.isascii():
        return neutral(text)
    return _JOINED_EMOJI.sub("", _UNSTEADY.sub("", neutral(text)))
