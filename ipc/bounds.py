"""Bounds of every value that comes from a client, a worker or a service.

The decoder checks them, so that no other code sees a number the journal cannot hold, a name of eight
megabytes or a text that would not fit an answer. `tests/ipc/test_bounds.py` walks all incoming structs and
fails when a field has no bound.

Two rules give the sizes:

- Numbers are what SQLite holds: 63 bits.
- Everything that the supervisor forwards fits one frame of 8 MiB again. A character is at most four bytes,
  so a text of a million characters is 4 MB; a row of the journal has at most two such texts.
"""

from typing import Annotated

from msgspec import Meta

NUMBER_MAX = 2**63 - 1
NAME_CHARACTERS_MAX = 200
ID_CHARACTERS_MAX = 300
SENTENCE_CHARACTERS_MAX = 4_000
TEXT_CHARACTERS_MAX = 1_000_000
MESSAGE_BYTES_MAX = 1024 * 1024
# Of one message: they are part of an Assign, beside its other parts.
INSTRUCTIONS_BYTES_MAX = 256 * 1024
ROWS_MAX = 10_000

# Counts, times in milliseconds, sequence numbers, process ids.
Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
# Of a model, for one attempt: more than any has cost, and the sums over attempts stay within 63 bits.
Tokens = Annotated[int, Meta(ge=0, le=10**12)]
# Of those tokens, in millionths of the currency of the prices; likewise.
COST_MAX = 10**15
Cost = Annotated[int, Meta(ge=0, le=COST_MAX)]
# Seconds of audio, seats per CPU: no measured value is larger, and infinity is refused.
Amount = Annotated[float, Meta(ge=0, le=1e9)]
# An exit status as os.waitstatus_to_exitcode gives it.
Status = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
# Rows that a client wants in one answer.
Limit = Annotated[int, Meta(ge=1, le=ROWS_MAX)]
# Of a session, a cursor, a tool, a person; also the key of a message.
Name = Annotated[str, Meta(max_length=NAME_CHARACTERS_MAX)]
# Of a message, a turn (SESSION/N), a question (SESSION/N#N), a tool call.
Id = Annotated[str, Meta(max_length=ID_CHARACTERS_MAX)]
# A word of a known vocabulary, a duration, a size.
Word = Annotated[str, Meta(max_length=40)]
# An error, a hint, a summary: something a person reads in one go.
Sentence = Annotated[str, Meta(max_length=SENTENCE_CHARACTERS_MAX)]
# Text of people and agents, arguments and results of tools.
Text = Annotated[str, Meta(max_length=TEXT_CHARACTERS_MAX)]
# A message of a person. The limit is MESSAGE_BYTES_MAX; the supervisor refuses a longer one with a better
# sentence than the decoder could.
MessageText = Annotated[str, Meta(max_length=4 * MESSAGE_BYTES_MAX)]
# Linux's own limit; also the address of a service.
FilePath = Annotated[str, Meta(max_length=4_096)]
# The `more` of the previous page.
Place = Annotated[str, Meta(max_length=4_096)]
Sentences = Annotated[tuple[Sentence, ...], Meta(max_length=100)]


def sentence(text: str) -> str:
    """Returns the text as a Sentence; a text that is too long is cut and ends with a mark."""
    if len(text) <= SENTENCE_CHARACTERS_MAX:
        return text
    return text[: SENTENCE_CHARACTERS_MAX - 1] + "…"
