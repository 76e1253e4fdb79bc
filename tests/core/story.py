"""Stories of the rules: sentences of the world, `----`, and all that was remembered, done and answered.

A paragraph is one or more sentences (`verb word … name=value`), `----`, and what came of them. The first one
begins with `given`: the policy, and whether workers are there already.
"""

import json
import shlex
from dataclasses import dataclass, fields
from typing import Any

from supervisor.core.effects import Decision
from supervisor.core.policy import Policy
from supervisor.core.reasons import Reason
from supervisor.core.records import Record
from supervisor.core.state import Message, Proof, Verdict, Who
from tests.world import World, agent_of

# The sentences a story may use; each is a method of the world.
_PEOPLE = (
    "says",
    "begins",
    "interrupts",
    "drops",
    "clears",
    "resumes",
    "drains",
    "undrains",
    "answers",
    "says_again",
    "has_read",
)
_VOICE = ("speaks_clip", "understands", "does_not_understand")
_PROCESSES = (
    "starts",
    "ready",
    "worker_ready",
    "dies",
    "dies_unproved",
    "sticks",
    "falls_silent",
    "beats",
    "unreachable",
)
_FRAMES = (
    "speaks",
    "begins_tool",
    "ends_tool",
    "notes",
    "takes_in",
    "asks",
    "holds",
    "asks_without_call",
    "passes_over",
)
_ENDINGS = ("finishes", "fails", "cannot_ask")
_HOUSE = (
    "model_is",
    "runtime_is",
    "crash",
    "taken_over",
    "gives",
    "takes_back",
    "restart_in_place",
    "stops",
    "passes",
    "scales",
    "host_has",
)
_SETTINGS = ("agents_are", "endpoints_are")
_SENTENCES = frozenset((*_PEOPLE, *_VOICE, *_PROCESSES, *_FRAMES, *_ENDINGS, *_HOUSE, *_SETTINGS))


@dataclass(frozen=True)
class Paragraph:
    """What is told, and what came of it when it was written down."""

    told: tuple[str, ...]
    came: tuple[str, ...]


def parse(text: str) -> list[Paragraph]:
    paragraphs = []
    for block in text.strip().split("\n\n"):
        told, _, came = block.partition("----\n")
        paragraphs.append(Paragraph(tuple(told.splitlines()), tuple(came.splitlines())))
    return paragraphs


def retell(text: str) -> str:
    """The same story as the rules tell it today."""
    return played(text)[0]


def played(text: str) -> tuple[str, World]:
    """The same story as the rules tell it today, and the world in which it happened."""
    world: World | None = None
    blocks = []
    for paragraph in parse(text):
        came: list[str] = []
        for line in paragraph.told:
            words, named = _read(line)
            if not words:
                continue
            if words[0] == "given":
                world = _given(named)
                continue
            assert world is not None, "a story begins with `given`"
            came += _tell(world, words, named)
        silent = all(line.startswith(("#", "given")) for line in paragraph.told)
        blocks.append("\n".join([*paragraph.told, *([] if silent else ["----", *(came or ["nothing"])])]))
    assert world is not None, "a story begins with `given`"
    return "\n\n".join(blocks) + "\n", world


def _read(line: str) -> tuple[list[str], dict[str, Any]]:
    words = shlex.split(line, comments=True)
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return [word for word in words if "=" not in word], {key: _value(each) for key, each in named.items()}


def _value(word: str) -> Any:
    """Numbers and truth as themselves, anything else as words."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def _given(named: dict[str, Any]) -> World:
    workers, agents = named.pop("workers", "ready"), named.pop("agents", "")
    for group in {"apart", "own_model"} & named.keys():
        named[group] = frozenset(named[group].split(","))
    world = World(Policy(agent_of(agents), **({"busy_seats": 1, "spares": 1} | named)))
    if workers == "ready":
        world.worker_ready()
    return world


def _tell(world: World, words: list[str], named: dict[str, Any]) -> list[str]:
    verb, *rest = words
    assert verb in _SENTENCES, f"no sentence begins with {verb}"
    known = len(world.steps)
    getattr(world, verb)(*(_value(word) for word in rest), **named)
    return [line for step in world.steps[known:] for line in _lines(step.decision)]


def _lines(decision: Decision) -> list[str]:
    lines = [_record(record) for record in decision.records]
    lines += [f"> {_words(effect)}" for effect in decision.effects]
    return lines + ([f"= {_words(decision.answer)}"] if decision.answer else [])


def _record(record: Record) -> str:
    name = f"#{record.seq} {record.type}" if record.seq else f"-- {type(record).__name__}"
    return f"{record.session} {name}{_fields(record, ('session', 'at', 'seq'))}"


def _words(thing: Any) -> str:
    return f"{type(thing).__name__}{_fields(thing, ())}"


# Values that go without saying: "stop" is the ordinary end of an answer.
_UNSAID: tuple[Any, ...] = ("", None, (), "stop")
# Counts that are told once there is something to count.
_UNSAID_AS_ZERO = (
    "offset", "earlier_length", "input_tokens", "output_tokens", "cost",
    "resumes", "hold", "is_held", "is_denied",
)  # fmt: skip


def _fields(thing: Any, hidden: tuple[str, ...]) -> str:
    shown = [(each.name, getattr(thing, each.name)) for each in fields(thing) if each.name not in hidden]
    told = [(name, value) for name, value in shown if value not in _UNSAID]
    return "".join(f" {name}={_print(value)}" for name, value in told if value or name not in _UNSAID_AS_ZERO)


def _print(value: Any) -> str:
    match value:
        case str():
            return value if value and " " not in value else json.dumps(value)
        case Reason():
            return _print(str(value))
        case Who():
            return f"{value.epoch}.{value.seat}.{value.incarnation}"
        case Message():
            return value.id
        case Proof():
            return f"{value.processes}/{value.all_dead}/{value.how}".replace(" ", "-")
        case Verdict():
            return f"{value.state}({value.by or value.error})"
        case tuple():
            return ",".join(_print(each) for each in value)
        case _:
            return str(value)
