"""The faults of a model server, each as a sentence with a hint; no key, no message text.

Where a retry cannot help, the server's own sentence is quoted, in the form of worker/model_complaint.py.
"""

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from ipc.messages import ModelEndpoint
from worker.errors import ContextOverflow, ModelError
from worker.model_complaint import Complaint

_CHECK_URL = "check [model] base_url in hermes.toml; it usually ends in /v1"
# Values of `fallback_tries`; more tries than there are mean after the last one.
NEVER, AT_ONCE, AFTER_ONE_RETRY, AFTER_ALL_RETRIES = 0, 1, 2, 99
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True)
class Fault:
    """An error as people see it.

    `wait_seconds` is the pause that the server asks for, `transient` allows a retry. After `fallback_tries`
    the next model of the agent is asked, if there is one: 1 is at once, 2 after one retry, 0 never.
    """

    error: ModelError
    transient: bool = False
    wait_seconds: float | None = None
    fallback_tries: int = 0


class Misbehaviour(Exception):
    """A model server sent something that cannot be part of an answer; `fault` describes it."""

    def __init__(self, fault: Callable[[ModelEndpoint], Fault]) -> None:
        super().__init__("the model server misbehaves")
        self.fault = fault


def shown(endpoint: ModelEndpoint) -> str:
    """Returns the address without user, password and query, which may be secret."""
    try:
        parts = urlsplit(endpoint.base_url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "[model] base_url"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def check(endpoint: ModelEndpoint) -> None:
    """Refuses a request that could not even be sent."""
    try:
        parts = urlsplit(endpoint.base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(
            "the address of the model server is not an http or https URL",
            'set [model] base_url in hermes.toml to something like "http://127.0.0.1:8000/v1"',
        )
    if not all("!" <= character <= "~" for character in endpoint.api_key):
        raise ModelError(
            "the API key holds a character that no key can hold (a space, a line break or a non-ASCII sign)",
            "write the bare key into the variable of [model] api_key_env, or into api_key_file",
        )


def of_status(status: int, complaint: Complaint, endpoint: ModelEndpoint) -> Fault:
    """Returns the fault for an HTTP status of 400 and above; temporary faults are not quoted."""
    word = next((code for code in complaint.codes if _CODE.fullmatch(code)), "")
    place = shown(endpoint)
    if complaint.is_overflow(status):
        return too_long(endpoint, f"HTTP {status}", complaint)
    if status == 429 and word != "insufficient_quota":
        error = f"the model server at {place} refused for now: too many requests (HTTP 429)"
        hint = "wait a little, or lower [workers] per_cpu in hermes.toml"
        return Fault(ModelError(error, hint), transient=True, fallback_tries=AFTER_ONE_RETRY)
    if status in (408, 409) or status >= 500:
        return server_error(endpoint, f"HTTP {status}")
    error, hint = _lasting(status, word, complaint, endpoint)
    # A key or an account that is refused, and a model that does not exist: another model may do.
    tries = AT_ONCE if status in (401, 403, 404, 429) else NEVER
    return Fault(ModelError(_quoting(error, complaint, endpoint), hint), fallback_tries=tries)


def _lasting(status: int, word: str, complaint: Complaint, endpoint: ModelEndpoint) -> tuple[str, str]:
    """Returns fault and hint of a refusal that another request would get again."""
    place = shown(endpoint)
    if status in (401, 403):
        return _wrong_key(status, endpoint)
    if status == 404 and "model" in f"{word} {complaint.sentence}".lower():
        error = f"the model server at {place} has no model named {endpoint.name!r}"
        return error, "set [model] name in hermes.toml to one that GET /models lists"
    if status in (404, 405, 410):
        return f"{place} is not an OpenAI-compatible API (HTTP {status})", _CHECK_URL
    if status == 429:
        error = f"the account at {place} has no quota left (HTTP 429)"
        return error, "top it up, or set another key with [model] api_key_env in hermes.toml"
    detail = f"HTTP {status}, {word}" if word else f"HTTP {status}"
    hint = "check that [model] name in hermes.toml can chat, and use tools if the agent has any"
    return f"the model server at {place} refused the request ({detail})", hint


def _quoting(error: str, complaint: Complaint, endpoint: ModelEndpoint) -> str:
    sentence = complaint.shown(endpoint.api_key)
    return f"{error}: “{sentence}”" if sentence else error


def too_long(endpoint: ModelEndpoint, where: str, complaint: Complaint) -> Fault:
    error = _quoting(f"the conversation is longer than the model can read ({where})", complaint, endpoint)
    hint = "start a new session, or send less at a time; [model] name in hermes.toml chooses another model"
    return Fault(ContextOverflow(error, hint), fallback_tries=AT_ONCE)


def of_connection(error: BaseException, endpoint: ModelEndpoint) -> Fault:
    """Returns the fault when no connection could be made."""
    place = shown(endpoint)
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Fault(
                ModelError(
                    f"the certificate of {place} is not trusted",
                    "add its authority to the system's, or set SSL_CERT_FILE for the service",
                )
            )
        if isinstance(cause, ssl.SSLError):
            return Fault(
                ModelError(f"{place} does not speak TLS", "use http:// in [model] base_url in hermes.toml")
            )
        if isinstance(cause, socket.gaierror):
            return _unreachable(f"the host name of {place} is not known")
    return _unreachable(f"nothing answers at {place}")


def server_error(endpoint: ModelEndpoint, where: str) -> Fault:
    error = f"the model server at {shown(endpoint)} had an error of its own ({where})"
    hint = "look at the model server's log, then send the message again"
    return Fault(ModelError(error, hint), transient=True, fallback_tries=AFTER_ONE_RETRY)


def cut(endpoint: ModelEndpoint) -> Fault:
    error = f"the model server at {shown(endpoint)} closed the connection before the answer was complete"
    hint = "send the message again; look at the model server's log if it stays"
    return Fault(ModelError(error, hint), transient=True, fallback_tries=AFTER_ALL_RETRIES)


def stalled(endpoint: ModelEndpoint, stall_seconds: float) -> Fault:
    """Not transient: the wait was long already, another attempt at the turn is the next step."""
    error = f"the model server at {shown(endpoint)} sent nothing for {stall_seconds:g} seconds"
    hint = "check that the model server is not stuck or overloaded"
    return Fault(ModelError(error, hint, again=True), fallback_tries=AT_ONCE)


def garbage(endpoint: ModelEndpoint) -> Fault:
    error = f"{shown(endpoint)} answered with something that is not an OpenAI chat stream"
    return Fault(ModelError(error, _CHECK_URL))


def web_page(endpoint: ModelEndpoint) -> Fault:
    error = f"{shown(endpoint)} answered with a web page, so it is not an OpenAI-compatible API"
    return Fault(ModelError(error, _CHECK_URL))


def too_large(endpoint: ModelEndpoint) -> Fault:
    error = f"the model server at {shown(endpoint)} sent more than one answer may hold"
    return Fault(ModelError(error, "ask for less at a time, or choose another [model] name in hermes.toml"))


def redirected(endpoint: ModelEndpoint, status: int, target: str) -> Fault:
    """`target` is scheme and host of another address; empty when it is none."""
    elsewhere = f" to {target}" if target else ""
    return Fault(
        ModelError(
            f"{shown(endpoint)} redirects{elsewhere} (HTTP {status}), and nothing is sent there",
            "if that is the model server, write its own address as [model] base_url in hermes.toml",
        )
    )


def packed(endpoint: ModelEndpoint) -> Fault:
    error = f"the model server at {shown(endpoint)} packs its answers (Content-Encoding), unasked"
    return Fault(ModelError(error, "switch compression off there, or in the proxy before it"))


def miscounted(endpoint: ModelEndpoint) -> Fault:
    error = f"the model server at {shown(endpoint)} reports a number of tokens that cannot be"
    return Fault(ModelError(error, "look at the model server: it does not count usage as the API has it"))


def not_http(endpoint: ModelEndpoint) -> Fault:
    error = f"{shown(endpoint)} does not keep to HTTP: its header is broken or has no end"
    return Fault(ModelError(error, _CHECK_URL))


def empty_answer(finish: str, thought: int) -> ModelError:
    """Returns the fault of an answer without text and calls.

    `thought` counts the characters of its reasoning.
    """
    if finish == "content_filter":
        return ModelError("the model server's content filter withheld the whole answer", "say it otherwise")
    hint = "send the message again, or choose another [model] name in hermes.toml"
    if finish == "length":
        spent = "was used up by thinking" if thought else "was reached before the first word"
        hint = "raise the model server's limit of tokens, or of its context, or ask for less at a time"
        return ModelError(f"the model's limit of length {spent}", hint)
    if thought:
        return ModelError(f"the model thought ({thought:,} characters) and said nothing", hint)
    return ModelError("the model gave an empty answer", hint)


def breaks_protocol(error: BaseException) -> bool:
    """True when the HTTP parser found a fault; it reports the end of the connection alike, which is none."""
    found = [cause for cause in _causes(error) if getattr(cause, "error_status_hint", None) is not None]
    return bool(found) and "closed" not in str(found[0])


def _wrong_key(status: int, endpoint: ModelEndpoint) -> tuple[str, str]:
    place = shown(endpoint)
    if not endpoint.api_key:
        return (
            f"the model server at {place} wants an API key and none is set (HTTP {status})",
            "set [model] api_key_env in hermes.toml to the variable that holds it, or api_key_file",
        )
    return (
        f"the model server at {place} refused the API key (HTTP {status})",
        "put a valid key into the variable of [model] api_key_env in hermes.toml, or into api_key_file",
    )


def _unreachable(error: str) -> Fault:
    hint = "check [model] base_url in hermes.toml, and that the model server runs and can be reached"
    return Fault(ModelError(error, hint), transient=True, fallback_tries=AFTER_ALL_RETRIES)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and its causes; 20 links are more than any library stacks."""
    link: BaseException | None = error
    for _ in range(20):
        if link is None:
            return
        yield link
        if isinstance(link, BaseExceptionGroup):
            yield from link.exceptions
        link = link.__cause__ or link.__context__
