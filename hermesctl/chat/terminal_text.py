"""Final filter for terminal text: removes control sequences and characters of ambiguous width."""

import re

from hermesctl.neutral import neutral

# Variation selectors (U+FE0E, U+FE0F) change the width of an emoji in some terminals only, and then whole
# lines are drawn in the wrong place; so do the implicit direction marks.
_UNSTEADY = re.compile("[\ufe0e\ufe0f\u061c\u200e\u200f]")
# A joiner makes one glyph of several emoji where the font has it, and several where it does not.
_JOINED_EMOJI = re.compile("(?<=[\U0001f000-\U0001faff\u2600-\u27bf])\u200d")


def steady(text: str) -> str:
    if text.isascii():
        return neutral(text)
    return _JOINED_EMOJI.sub("", _UNSTEADY.sub("", neutral(text)))
