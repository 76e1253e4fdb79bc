"""How a model server can mistreat its clients over correct HTTP: a mode each, as status, header and body.

A body is an endless or a finite iterator of parts; the server sends them until the client leaves.
"""

import base64
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fake_model_script import Script

_ZEROES = bytes(1024 * 1024)


@dataclass(frozen=True)
class Mistreatment:
    parts: Iterator[bytes] = field(default_factory=lambda: iter(()))
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)
    status: int = 200


def event(**content: Any) -> bytes:
    """One event of a stream; `content` may hold anything."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
    return f"data: {json.dumps(head | content)}\n\n".encode()


def choice(finish: Any = None, **delta: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def _redirect(script: Script) -> Mistreatment:
    """Elsewhere, by default with the method and the body."""
    headers = (("location", script.option("to", "http://127.0.0.1:9/v1/chat/completions")),)
    return Mistreatment(headers=headers, status=script.option("status", 307))


def _bomb(script: Script) -> Mistreatment:
    """So many mebibytes in a thousandth of the bytes; as an answer, or as the body of an error."""
    mebibytes = script.option("mebibytes", 4096)
    encoding = script.option("encoding", "gzip")
    headers: tuple[tuple[str, str], ...]
    if encoding.startswith("charset="):
        headers = (("content-type", f"text/plain; {encoding}"),)
    else:
        headers = (("content-type", "text/event-stream"), ("content-encoding", encoding))
    window = 31 if encoding == "gzip" else 15

    def parts() -> Iterator[bytes]:
        packer = zlib.compressobj(9, zlib.DEFLATED, window)
        yield packer.compress(b'data: {"choices": "')
        for _ in range(mebibytes):
            yield packer.compress(_ZEROES)
        yield packer.flush()

    return Mistreatment(filter(None, parts()), headers, script.option("status", 200))


def _endless(script: Script) -> Mistreatment:
    """Something without end: a line, an event of many lines, an error, a header, answers that say nothing."""
    kind = script.option("kind", "line")
    if kind == "header":
        return Mistreatment(headers=tuple((f"x-{number}", "x" * 1000) for number in range(2000)))
    part, status = {
        "line": (b"x" * 65536, 200),
        "event": (b"data: x\n" * 8192, 200),
        "carriage": (b"data: x\r" * 8192, 200),
        "error": (b"x" * 65536, 500),
        "silence": (b": nothing\n\n" * 4096, 200),
        "after": (b"data: [DONE]\n\n" + b"x" * 65536, 200),
    }[kind]
    first = [choice(content="whole"), choice("stop")] if kind == "after" else []
    return Mistreatment(itertools.chain(first, itertools.repeat(part)), status=status)


def _usage(script: Script) -> Mistreatment:
    """An answer that cost `tokens`, which is JSON."""
    tokens = script.option("tokens", str(2**63))
    usage = f'{{"prompt_tokens": {tokens}, "completion_tokens": {tokens}, "total_tokens": {tokens}}}'
    counted = event(choices=[], usage="USAGE").replace(b'"USAGE"', usage.encode())
    return Mistreatment(iter([choice(content="counted"), choice("stop"), counted, b"data: [DONE]\n\n"]))


def _nested(script: Script) -> Mistreatment:
    """JSON so deep that a parser that calls itself runs out of stack."""
    depth = script.option("depth", 100_000)
    deep = b"[" * depth + b"]" * depth
    return Mistreatment(iter([event(choices="DEEP").replace(b'"DEEP"', deep), b"data: [DONE]\n\n"]))


def _halves(script: Script) -> Mistreatment:
    """A character in two halves, halves of none, and a NUL; in the text, or in a call."""
    if script.option("kind", "text") == "text":
        texts = ("smile \ud83d", "\ude00 lone \ud800", " and \udfff", " nul \0.")
        return Mistreatment(
            iter([*(choice(content=text) for text in texts), choice("stop"), b"data: [DONE]\n\n"])
        )
    function = {"name": "sh\ud800ell", "arguments": '{"command": "\ud800\\u0000"}'}
    call = choice(tool_calls=[{"index": 0, "id": "\ud800", "type": "function", "function": function}])
    return Mistreatment(iter([call, choice("tool_calls"), b"data: [DONE]\n\n"]))


def _flood(script: Script) -> Mistreatment:
    """Tool calls: ten thousand, or one with arguments without end, or with a name or an id of a megabyte."""

    def call(index: int, **function: str) -> bytes:
        parts = {
            "index": index,
            "id": function.pop("id", f"c{index}"),
            "type": "function",
            "function": function,
        }
        return choice(tool_calls=[parts])

    kind = script.option("kind", "calls")
    if kind == "arguments":
        begin = call(0, name="shell", arguments='{"command": "')
        return Mistreatment(itertools.chain([begin], itertools.repeat(call(0, arguments="x" * 65536))))
    if kind == "calls":
        parts = [call(index, name="shell", arguments="{}") for index in range(10_000)]
    elif kind == "at once":
        many = [{"index": index, "function": {"name": "shell", "arguments": "{}"}} for index in range(10_000)]
        parts = [choice(tool_calls=many)]
    elif kind == "names":
        parts = [call(0, name="n" * 1_000_000, id="i" * 1_000_000, arguments="{}")]
    else:
        raise KeyError(kind)
    return Mistreatment(iter([*parts, choice("tool_calls"), b"data: [DONE]\n\n"]))


def _content(script: Script) -> Mistreatment:
    """Any events at all: `events` is base64 of JSON, a list of what each event holds."""
    events = json.loads(base64.b64decode(script.option("events", "W10=")))
    lines = (f"data: {json.dumps(each)}\n\n".encode() for each in events)
    return Mistreatment(itertools.chain(lines, [b"data: [DONE]\n\n"]))


CRUELTIES: dict[str, Callable[[Script], Mistreatment]] = {
    "redirect": _redirect,
    "bomb": _bomb,
    "endless": _endless,
    "usage": _usage,
    "nested": _nested,
    "halves": _halves,
    "flood": _flood,
    "content": _content,
}
