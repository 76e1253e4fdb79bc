"""Bodies of requests in the shapes of the OpenAI API, read into a conversation.

Fields that are not named here are ignored: sampling, tools and limits of tokens are the agent's own matter.
What would make the answer wrong in silence is refused: several answers at once, a format other than text,
images and sounds.
"""

import hashlib

import msgspec

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.openai.conversation_rule import Asking, Conversation, Said
from gateway.openai.session_choice import Wish
from ipc.bounds import INSTRUCTIONS_BYTES_MAX, MESSAGE_BYTES_MAX

# A long conversation comes whole, every time.
BODY_BYTES_MAX = 16 * 1024 * 1024
# Behind the name of a session come the owner's prefix before it and the mark of a branch behind it.
_SESSION_CHARACTERS_MAX = 120
# What templates of clients become when there is no message before: of Open WebUI, others, LibreChat.
_NO_PARENT = frozenset({"", "none", "null", "00000000-0000-0000-0000-000000000000"})
_INSTRUCTING = ("system", "developer")
_TEXTS = ("text", "input_text", "output_text", "refusal")


class ContentPart(msgspec.Struct):
    type: str = "text"
    text: str = ""
    refusal: str = ""


class ChatMessage(msgspec.Struct):
    """A message of a conversation, or another item: of those only the type is of interest."""

    role: str = ""
    content: str | list[ContentPart] | None = None
    type: str = "message"


class Format(msgspec.Struct):
    type: str = "text"


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class ChatRequest(msgspec.Struct):
    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    response_format: Format | None = None
    modalities: list[str] | None = None


class TextOptions(msgspec.Struct):
    format: Format | None = None


class ConversationName(msgspec.Struct):
    id: str


class ResponseRequest(msgspec.Struct):
    model: str
    input: str | list[ChatMessage]
    instructions: str | None = None
    stream: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    text: TextOptions | None = None
    metadata: dict[str, str] | None = None


def chat_asking(request: ChatRequest) -> Asking:
    if request.n not in (None, 1):
        raise HttpError(400, "n is not 1", "an agent gives one answer: send the request again for another")
    if "audio" in (request.modalities or ()):
        raise HttpError(400, "an agent answers with text, not with audio", "leave modalities out")
    _check_format(request.response_format)
    return _asking(request.messages, "", request.model)


def response_asking(request: ResponseRequest) -> Asking:
    _check_format(request.text.format if request.text else None)
    if isinstance(request.input, str):
        items = [ChatMessage("user", request.input)]
    else:
        items = [item for item in request.input if item.type == "message"]
    return _asking(items, request.instructions or "", request.model)


def _asking(messages: list[ChatMessage], instructions: str, agent: str) -> Asking:
    instructing = [text_of(each) for each in messages if each.role in _INSTRUCTING]
    last = max((at for at, each in enumerate(messages) if each.role == "assistant"), default=-1)
    past = [said for each in messages[: last + 1] if (said := _said(each)) is not None]
    new = [text_of(each) for each in messages[last + 1 :] if each.role == "user"]
    together = "\n\n".join(text for text in (instructions, *instructing) if text)
    _check_size("instructions", together, INSTRUCTIONS_BYTES_MAX)
    if not "".join(new).strip():
        fault = "the message is empty" if new else "there is no message of the user behind the last answer"
        raise HttpError(400, fault, "write something in the last message, with the role user")
    _check_size("message", "\n\n".join(new), MESSAGE_BYTES_MAX)
    return Asking(Conversation(tuple(past), tuple(new)), together, agent)


def _said(message: ChatMessage) -> Said | None:
    """Calls of tools have no text; neither they nor their results are part of what was said."""
    text = text_of(message, is_past=True)
    if message.role == "user":
        return Said("user", text)
    return Said("assistant", text) if message.role == "assistant" and text else None


def text_of(message: ChatMessage, *, is_past: bool = False) -> str:
    """The text of a message. What is no text is refused where it is new, and named where it is past."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts = []
    for part in message.content:
        if part.type in _TEXTS:
            texts.append(part.text or part.refusal)
        elif is_past:
            texts.append(f"[{part.type}]")
        else:
            fault = f"a message has a part of the type {part.type[:40]!r}"
            raise HttpError(400, fault, "send text; a sound goes to /v1/audio/transcriptions first")
    return "\n".join(texts)


def _check_size(what: str, text: str, most: int) -> None:
    size = len(text.encode(errors="replace"))
    if size > most:
        hint = "put the large part in a file and name the file"
        raise HttpError(413, f"the {what} has {size:,} bytes, the limit is {most:,}", hint)


def _check_format(format: Format | None) -> None:
    if format is not None and format.type != "text":
        hint = "leave the format out, and ask for it in words"
        raise HttpError(400, f"an agent does not promise the format {format.type[:40]!r}", hint)


def session_name(exchange: Exchange) -> str:
    """The session that X-Session names; empty when there is none. Templates of clients may stay empty."""
    found = exchange.headers(b"x-session")
    if len(found) > 1:
        raise HttpError(400, "there are several X-Session headers", "send one")
    return checked_name(found[0], "X-Session") if found and found[0] else ""


def checked_name(name: str, what: str) -> str:
    if 0 < len(name) <= _SESSION_CHARACTERS_MAX and name.isprintable() and name.strip() == name:
        return name
    fault = f"{what} has not 1 to {_SESSION_CHARACTERS_MAX} printable characters without space at its ends"
    raise HttpError(400, fault, "name the session, for example, after the chat of the client")


def conversation_name(request: ResponseRequest) -> str:
    """The session that `conversation` names; empty when there is none."""
    given = request.conversation
    if given is None:
        return ""
    return checked_name(given if isinstance(given, str) else given.id, "conversation")


def wish(exchange: Exchange, asking: Asking, body: msgspec.Struct, conversation: str = "") -> Wish:
    """What the request asks for, and how it names the conversation: X-Session comes first."""
    assert exchange.token is not None
    name = session_name(exchange) or conversation
    named = [exchange.headers(header) for header in (b"x-session", b"x-parent")]
    # The same for a request that is sent again, and for no other one.
    identity = msgspec.json.encode([exchange.token.id, exchange.scope["path"], named, body])
    return Wish(
        asking,
        by=exchange.by,
        prefix=exchange.namespace.prefix,
        name=exchange.namespace.inward(name) if name else "",
        digest=hashlib.blake2b(identity, digest_size=10).hexdigest(),
        # The SDKs of OpenAI count their attempts.
        repeats=exchange.header(b"x-stainless-retry-count") not in ("", "0"),
        begins=_begins(exchange),
    )


def is_detached(exchange: Exchange) -> bool:
    """Whether the turn goes on when the client has gone."""
    wanted = exchange.header(b"x-on-disconnect").lower()
    if wanted not in ("", "detach", "interrupt"):
        raise HttpError(400, f"X-On-Disconnect is {wanted[:40]!r}", "it is detach or interrupt")
    return wanted == "detach"


def _begins(exchange: Exchange) -> bool:
    """Whether the client says that the message has none before it."""
    found = exchange.headers(b"x-parent")
    return len(found) == 1 and found[0].lower() in _NO_PARENT
