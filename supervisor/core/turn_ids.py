"""The id of a turn: its session and its number."""

# A longer number is no turn's, and from 19 digits on SQLite cannot store it.
_DIGITS_MAX = 18


def turn_id(session: str, number: int) -> str:
    return f"{session}/{number}"


def session_of(turn: str) -> str:
    return turn.rpartition("/")[0]


def turn_number(turn: str) -> int:
    """Return the number of a turn in its session; 0, which no turn has, when the text is no turn's id."""
    number = turn.rpartition("/")[2]
    is_number = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    return int(number) if is_number and number[0] != "0" else 0
