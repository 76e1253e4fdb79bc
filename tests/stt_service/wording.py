"""How far words are from those that were said: word errors, blind to signs, case and a few spellings."""

import re

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPELLINGS = {"mr": "mister"} | {str(number): word for number, word in enumerate(_NUMBERS, start=1)}


def words(text: str) -> list[str]:
    found = re.findall(r"[a-z0-9']+", text.lower().replace("-", " "))
    return [_SPELLINGS.get(word, word) for word in found]


def errors(said: str, understood: str) -> int:
    """Words to add, drop or change."""
    wanted, found = words(said), words(understood)
    row = list(range(len(found) + 1))
    for number, word in enumerate(wanted, start=1):
        above, row = row, [number]
        for place, other in enumerate(found, start=1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (word != other)))
    return row[-1]
