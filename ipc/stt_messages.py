"""Messages between the supervisor and the STT service beyond states and beats; they carry no audio.

A clip is named by the path of its file. One Transcribed or NotTranscribed answers each Transcribe that is not
forgotten.
"""

from ipc.bounds import Amount, Id, Sentence, Sentences, Text, Word
from ipc.messages import Message

# --- supervisor -> stt_service ------------------------------------------------------------------------------


class Transcribe(Message, frozen=True, tag="transcribe"):
    """Transcribe the file at `path`, which has `bytes` bytes.

    The deadline counts from the moment the service begins with the clip. Empty strings and a language of None
    mean the options that the service was started with.
    """

    message: str
    path: str
    bytes: int
    deadline_seconds: float
    language: str | None = None
    prompt: str = ""
    hotwords: str = ""


class Forget(Message, frozen=True, tag="forget"):
    """The transcript is no longer needed: the clip leaves the queue, or stops after its current part."""

    message: str


ToStt = Transcribe | Forget


# --- stt_service -> supervisor ------------------------------------------------------------------------------


class TranscriptProgress(Message, frozen=True, tag="progress"):
    """Progress of a clip and its text so far; the first one, with nothing done, reports the start."""

    message: Id
    seconds_done: Amount
    seconds_total: Amount
    text: Text = ""


class Transcribed(Message, frozen=True, tag="transcribed"):
    """The transcript of a clip. `cautions` are sentences about missing parts."""

    message: Id
    text: Text
    language: Word
    seconds: Amount
    cautions: Sentences = ()


class NotTranscribed(Message, frozen=True, tag="nottranscribed"):
    """The clip has no transcript. `again` is true when a retry may succeed."""

    message: Id
    reason: Sentence
    hint: Sentence
    again: bool = False


FromStt = TranscriptProgress | Transcribed | NotTranscribed
