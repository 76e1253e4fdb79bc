"""Routes that change something: messages, interrupts, what waits, answers, retries, seats."""

import asyncio
import os
from typing import Annotated, Any, get_args

import msgspec

from gateway import audio_upload
from gateway.errors import HttpError, Unavailable
from gateway.exchange import Exchange, json_bytes_max
from gateway.parts import Parts
from gateway.queries_api import session_of_message, turn_of
from ipc.bounds import INSTRUCTIONS_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_CHARACTERS_MAX, NUMBER_MAX
from ipc.messages import (
    Accepted,
    Begin,
    BusyMode,
    Done,
    Drain,
    Event,
    Interrupt,
    Queue,
    Request,
    Respond,
    Retry,
    Scale,
    Submit,
    Undrain,
)

# A kill takes milliseconds; ten seconds without its proof is a fault worth reporting.
_PROOF_SECONDS = 10.0
_ENDS = frozenset({"turn.interrupted", "turn.done", "turn.failed"})


class MessageBody(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    busy: BusyMode | None = None
    expect_turn: str | None = None
    agent: str = ""
    instructions: str = ""


class ForkBody(msgspec.Struct, forbid_unknown_fields=True):
    through_turn: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
    session: str


class InterruptBody(msgspec.Struct, forbid_unknown_fields=True):
    expect_turn: str | None = None
    drop: bool = False


class AnswerBody(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class ScaleBody(msgspec.Struct, forbid_unknown_fields=True):
    seats: int | None = None
    per_cpu: float | None = None


async def post_message(parts: Parts, exchange: Exchange) -> None:
    """Sends a text or a clip; answers once it is durable."""
    exchange.query()
    key = _key(exchange)
    session = exchange.namespace.inward(exchange.parameters["session"])
    if audio_upload.is_form(exchange):
        accepted = await _submit_clip(parts, exchange, session, key)
    else:
        body = await exchange.json(MessageBody, json_bytes_max(MESSAGE_BYTES_MAX + INSTRUCTIONS_BYTES_MAX))
        _check_text(body.text)
        expect = _inward(exchange, body.expect_turn)
        submit = Submit(
            session,
            body.text,
            key,
            body.busy,
            expect,
            by=exchange.by,
            agent=body.agent,
            instructions=body.instructions,
        )
        accepted = await parts.supervisor.ask(submit, Accepted)
    await _answer_accepted(exchange, accepted)


async def _submit_clip(parts: Parts, exchange: Exchange, session: str, key: str) -> Accepted:
    assert exchange.token is not None
    with parts.limiter.uploads.one(exchange.token.id):
        clip, fields = await audio_upload.store(exchange, parts.clips)
    try:
        busy = _mode(fields.pop("busy", ""))
        if fields:
            unknown = next(iter(fields))[:40]
            raise HttpError(400, f"there is no part {unknown!r}", "the parts are audio and busy")
        submit = Submit(session, "", key, busy, clip=clip, by=exchange.by)
        accepted = await parts.supervisor.ask(submit, Accepted)
    except Unavailable:
        # It may have been accepted: then it is needed. Else it is removed as a stray one, within the hour.
        raise
    except HttpError:
        audio_upload.discard(parts.clips, clip)
        raise
    if accepted.again:
        audio_upload.discard(parts.clips, clip)
    return accepted


async def post_interrupt(parts: Parts, exchange: Exchange) -> None:
    """Answers when every process of the turn is proved gone."""
    exchange.query()
    body = await exchange.json(InterruptBody, default=InterruptBody())
    session = exchange.namespace.inward(exchange.parameters["session"])
    news = asyncio.Event()
    reader = await parts.feeds.open(session, None, news.set)
    try:
        request = Interrupt(session, exchange.by, _inward(exchange, body.expect_turn), body.drop)
        done = await parts.supervisor.ask(request, Done)
        ended = _unwritten(done)
        missing = set(done.turns) - {each["turn"] for each in ended}
        try:
            async with asyncio.timeout(_PROOF_SECONDS):
                while missing:
                    news.clear()
                    if (batch := reader.take()) is None:
                        await news.wait()
                        continue
                    for item in batch.items:
                        if isinstance(item.message, Event) and item.message.fields.get("turn") in missing:
                            ended += _ending(item.message, missing)
        except TimeoutError:
            fault = f"there is no proof within {_PROOF_SECONDS:g} s that {', '.join(missing)} has ended"
            raise HttpError(503, fault, "GET /api/workers shows what still runs") from None
    finally:
        reader.close()
    note = done.note or ("" if done.turns else "nothing runs in this session")
    one: dict[str, Any] = ended[0] if ended else {"turn": None, "state": None, "killed": None}
    shown = exchange.namespace.row({"session": session, **one, "note": note})
    await exchange.answer(200, shown)


def _unwritten(done: Done) -> list[dict[str, Any]]:
    """The turns that were stopped while the journal cannot be written: the proofs come with the answer."""
    if not done.unwritten:
        return []
    proofs = {each.turn: msgspec.to_builtins(each) for each in done.killed}
    return [
        {"turn": turn, "state": "interrupted", "killed": proofs.get(turn), "unwritten": done.unwritten}
        for turn in done.turns
    ]


def _ending(event: Event, missing: set[str]) -> list[dict[str, Any]]:
    turn, fields = event.fields["turn"], event.fields
    if event.type == "attempt.stuck":
        hint = "its session is held until they are gone; GET /api/workers shows them"
        raise HttpError(503, f"{turn} was killed, but some of its processes are still there", hint)
    if event.type not in _ENDS:
        return []
    missing.discard(turn)
    # The proof is null for a turn that ended by itself before the interrupt reached it.
    return [{"turn": turn, "state": event.type.removeprefix("turn."), "killed": fields.get("killed")}]


async def delete_waiting(parts: Parts, exchange: Exchange) -> None:
    """Drops one message that waits, or all."""
    message = exchange.parameters.get("message")
    await _change_queue(parts, exchange, "clear" if message is None else "drop", message)


async def post_resume(parts: Parts, exchange: Exchange) -> None:
    """Releases the messages that an interrupt holds back."""
    await _change_queue(parts, exchange, "resume", None)


async def _change_queue(parts: Parts, exchange: Exchange, act: Any, message: str | None) -> None:
    session = exchange.namespace.inward(exchange.parameters["session"])
    await _carry_out(parts, exchange, Queue(session, act, message, by=exchange.by))


async def post_answer(parts: Parts, exchange: Exchange) -> None:
    """Answers an open question."""
    body = await exchange.json(AnswerBody, json_bytes_max(MESSAGE_BYTES_MAX))
    _check_text(body.text)
    question = exchange.namespace.inward(exchange.parameters["question"])
    await _carry_out(parts, exchange, Respond(question, body.text, exchange.by))


async def post_retry(parts: Parts, exchange: Exchange) -> None:
    """Sends the messages of a turn again, or has a clip transcribed again."""
    exchange.query()
    key = _key(exchange)
    if "message" in exchange.parameters:
        what = exchange.parameters["message"]
        await session_of_message(parts, exchange, what)
    else:
        what = turn_of(exchange)
    await _answer_accepted(exchange, await parts.supervisor.ask(Retry(what, key), Accepted))


async def post_fork(parts: Parts, exchange: Exchange) -> None:
    """Makes a session that begins with the turns of this one, through the turn of that number."""
    exchange.query()
    key = _key(exchange)
    body = await exchange.json(ForkBody)
    inward = exchange.namespace.inward
    request = Begin(
        inward(body.session),
        key,
        from_session=inward(exchange.parameters["session"]),
        through_turn=body.through_turn,
    )
    await parts.supervisor.ask(request, Done)
    await exchange.answer(200, {"session": body.session})


async def post_drain(parts: Parts, exchange: Exchange) -> None:
    """Starts no turn from now on."""
    await _carry_out(parts, exchange, Drain())


async def post_undrain(parts: Parts, exchange: Exchange) -> None:
    """Starts turns again."""
    await _carry_out(parts, exchange, Undrain())


async def post_scale(parts: Parts, exchange: Exchange) -> None:
    """Sets the number of turns that run at once."""
    body = await exchange.json(ScaleBody)
    if body.seats is None and body.per_cpu is None:
        raise HttpError(400, "neither seats nor per_cpu is given", 'send {"seats": 4} or {"per_cpu": 2}')
    await _carry_out(parts, exchange, Scale(body.seats, body.per_cpu))


async def _carry_out(parts: Parts, exchange: Exchange, request: Request) -> None:
    exchange.query()
    done = await parts.supervisor.ask(request, Done)
    shown = {"turns": done.turns, "note": done.note}
    await exchange.answer(200, exchange.namespace.row(shown))


async def _answer_accepted(exchange: Exchange, accepted: Accepted) -> None:
    shown: dict[str, Any] = {"message": accepted.message, "seq": accepted.seq}
    if accepted.again:
        shown["again"] = True
    if accepted.note:
        shown["note"] = accepted.note
    await exchange.answer(202, exchange.namespace.row(shown))


def _key(exchange: Exchange) -> str:
    """The client's key, or one that makes the gateway's own repetitions one message."""
    found = exchange.headers(b"idempotency-key")
    if not found:
        return f"gateway-{os.urandom(12).hex()}"
    key = found[0]
    if len(found) > 1 or not (0 < len(key) <= NAME_CHARACTERS_MAX and key.isprintable()):
        fault = f"an Idempotency-Key has 1 to {NAME_CHARACTERS_MAX} printable characters"
        raise HttpError(400, fault, "use a random one for each message, and the same for its repetitions")
    return key


def _mode(word: str) -> BusyMode | None:
    if not word:
        return None
    try:
        mode: BusyMode = msgspec.convert(word, BusyMode)
        return mode
    except msgspec.ValidationError:
        hint = f"it is one of {', '.join(get_args(BusyMode))}"
        raise HttpError(400, f"busy is none of its words: {word[:40]!r}", hint) from None


def _check_text(text: str) -> None:
    size = len(text.encode(errors="replace"))
    if size > MESSAGE_BYTES_MAX:
        hint = "put the large part in a file and name the file in the message"
        raise HttpError(413, f"the message is {size:,} bytes, the limit is {MESSAGE_BYTES_MAX:,}", hint)
    if not text.strip():
        raise HttpError(400, "the message is empty", "write something in text")


def _inward(exchange: Exchange, id: str | None) -> str | None:
    return None if id is None else exchange.namespace.inward(id)
