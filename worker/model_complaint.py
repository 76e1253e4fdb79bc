"""Reads the error body of a model server: its code, and its own sentence.

Servers agree on little here. The error is an object under `error`, or a text there, or the body itself, or
the first of a list; the code is in `code`, `type` or `status`, a word or a number. Two things are derived
from it.

Whether the conversation is too long. Codes are checked first, then a short list of phrases of known servers.
A false positive costs a few shorter requests, each refused again, and the turn then fails with the server's
own words.

The sentence for a person. It helps to fix a fault that no retry can, but it may repeat parts of the request.
So it goes to the person of that turn, in `turn.failed`, and into no log; it is one line of at most 200
characters without control or formatting characters; and the API key in it, or any run of 12 characters that
is in the key, is replaced.
"""

from dataclasses import dataclass
from typing import Any

_OVERFLOW_CODES = {
    "context_length_exceeded",  # OpenAI, Azure, Groq, OpenRouter
    "exceed_context_size_error",  # llama.cpp
    "model_context_window_exceeded",
    "contextwindowexceedederror",  # LiteLLM
    "request_too_large",  # Anthropic
}
_OVERFLOW_PHRASES = (
    "maximum context length",  # OpenAI, vLLM, DeepSeek, OpenRouter, SGLang
    "available context size",  # llama.cpp
    "exceeds the context",  # Ollama, OpenAI
    "exceed context",
    "context length exceeded",
    "context length of only",  # LM Studio
    "context window",
    "longer than the model's context length",  # SGLang
    "longer than the maximum model length",  # vLLM
    "maximum model length",
    "maximum prompt length",  # xAI
    "prompt is too long",  # Anthropic
    "input is too long",  # Bedrock
    "maximum number of tokens allowed",  # Gemini
    "tokens + `max_new_tokens` must be",  # TGI
    "too large for model with",  # Mistral
    "request too large",  # OpenAI, Groq: more tokens than may be used in a minute
    "reduce the length of the messages",
)
# Statuses with which the phrases count; no temporary fault of a server has one of them.
_OVERFLOW_STATUSES = {200, 400, 413, 422, 429, 500}
_PAYLOAD_TOO_LARGE = 413
# A sentence is examined up to here: servers that repeat the request do so at its end.
_LOOKED_AT_CHARACTERS = 4_000
_SHOWN_CHARACTERS_MAX = 200
# Shorter pieces of a key are in many words, and a server that masks it shows as much.
_KEY_RUN_CHARACTERS = 12
_KEY_MARK = "[key]"


@dataclass(frozen=True)
class Complaint:
    """`codes` are the words under `code`, `type` and `status`; `sentence` is the server's own."""

    codes: tuple[str, ...] = ()
    sentence: str = ""

    def is_overflow(self, status: int) -> bool:
        """True when the request is longer than the model's context, or than the server accepts."""
        if status == _PAYLOAD_TOO_LARGE or any(code.lower() in _OVERFLOW_CODES for code in self.codes):
            return True
        sentence = self.sentence[:_LOOKED_AT_CHARACTERS].lower()
        return status in _OVERFLOW_STATUSES and any(phrase in sentence for phrase in _OVERFLOW_PHRASES)

    def shown(self, key: str) -> str:
        """Returns the sentence for a person; empty when there is none."""
        words = " ".join(self.sentence[:_LOOKED_AT_CHARACTERS].split())
        line = _without_key("".join(each for each in words if each.isprintable()), key)
        return line if len(line) <= _SHOWN_CHARACTERS_MAX else line[: _SHOWN_CHARACTERS_MAX - 1] + "…"


def read_complaint(body: object, *, is_json: bool = True) -> Complaint:
    """Reads the body of an error, as the SDK gives it: the content of `error` where that is a key."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict | str):
        body = body["error"]
    if isinstance(body, str):
        # A body that is no JSON is a web page, or anything; not a sentence.
        return Complaint(sentence=body) if is_json else Complaint()
    return _of_object(body) if isinstance(body, dict) else Complaint()


def _of_object(body: dict[str, Any]) -> Complaint:
    codes = tuple(each for name in ("code", "type", "status") if isinstance(each := body.get(name), str))
    sentences = (body.get(name) for name in ("message", "detail", "msg"))
    return Complaint(codes, next((each for each in sentences if isinstance(each, str)), ""))


def _without_key(text: str, key: str) -> str:
    """Masks each run of characters that is in the key; a short key must be there whole."""
    if not key:
        return text
    size = min(_KEY_RUN_CHARACTERS, len(key))
    runs = {key[at : at + size] for at in range(len(key) - size + 1)}
    shown, at = "", 0
    while at < len(text):
        if text[at : at + size] not in runs:
            shown += text[at]
            at += 1
            continue
        end = at + size
        while text[end - size + 1 : end + 1] in runs:
            end += 1
        shown += _KEY_MARK
        at = end
    return shown
