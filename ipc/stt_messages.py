"""What the supervisor and the STT service say to each other beyond states and beats; audio never travels.

A clip is named by the path of its file. One Heard or NotHeard answers each Transcribe that is not forgotten.
"""

from ipc.bounds import Amount, Id, Sentence, Sentences, Text, Word
from ipc.messages import Message

# --- supervisor -> stt_service ------------------------------------------------------------------------------


class Transcribe(Message, frozen=True, tag="transcribe"):
    """Write down what is said in the file at `path`, which has `bytes` bytes.

    The deadline counts from the moment the service begins with the clip. Empty strings and a language of None
    mean what the service was started with.
    """

    message: str
    path: str
    bytes: int
    deadline_seconds: float
    language: str | None = None
    prompt: str = ""
    hotwords: str = ""


class Forget(Message, frozen=True, tag="forget"):
    """Nobody waits for this clip any more: it leaves the queue, or stops after the part being heard."""

    message: str


ToHearing = Transcribe | Forget


# --- stt_service -> supervisor ------------------------------------------------------------------------------


class Hearing(Message, frozen=True, tag="hearing"):
    """How far a clip is and what was understood so far; the first, with nothing done, says it has begun."""

    message: Id
    seconds_done: Amount
    seconds_total: Amount
    text: Text = ""


class Heard(Message, frozen=True, tag="heard"):
    """The words of a clip. `cautions` are sentences about what may be missing."""

    message: Id
    text: Text
    language: Word
    seconds: Amount
    cautions: Sentences = ()


class NotHeard(Message, frozen=True, tag="notheard"):
    """The clip gave no words. `again` says whether another try could do better."""

    message: Id
    reason: Sentence
    hint: Sentence
    again: bool = False


FromHearing = Hearing | Heard | NotHeard
