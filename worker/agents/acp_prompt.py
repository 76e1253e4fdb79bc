"""The prompt of a turn: the messages, after the part of the journal's record that the agent may lack.

An ACP agent keeps its conversation itself. What it has stored when it is killed is unknown, and a new
session has nothing. So the prompt repeats from the journal every turn since the last one that the agent
has surely seen to its end, and the earlier attempts at this turn.
"""

from msgspec.structs import replace

from ipc.messages import Assign
from worker.agents.chat_messages import GO_ON, ChatMessage, conversation

# Some 50,000 tokens; the agent manages its own context beyond that.
_RECORD_CHARACTERS_MAX = 200_000
_BEGIN = (
    "[note: the record of this conversation follows, as its host has kept it, since your own memory of it "
    "may have been lost.]"
)
_END = "[note: end of the record. Answer this message:]"


def turn_number(assign: Assign) -> int:
    """Turns are named SESSION/N."""
    return int(assign.turn.rpartition("/")[2])


def prompt_text(assign: Assign, known_turns: int) -> str:
    """`known_turns` is the last turn that the agent's session has whole; 0 for a new session."""
    missing = turn_number(assign) - 1 - known_turns
    history = assign.history[-missing:] if missing > 0 else ()
    said = "\n\n".join(message.text for message in assign.messages)
    _, *record = conversation(replace(assign, history=history), "", _RECORD_CHARACTERS_MAX)
    if len(record) == 1:
        return said
    if assign.tried:
        # A model takes a result as the request to go on; a program must be asked.
        ending = () if record[-1] == GO_ON else (GO_ON,)
        return "\n\n".join([_BEGIN, *map(_written, (*record, *ending))])
    return "\n\n".join([_BEGIN, *map(_written, record[:-1]), _END, said])


def _written(message: ChatMessage) -> str:
    content = message.get("content") or ""
    match message["role"]:
        case "user":
            return content if content.startswith("[note:") else f"User: {content}"
        case "tool":
            return f"Result: {content}"
    calls = [
        f"You called {call['function']['name']} with {call['function']['arguments']}"
        for call in message.get("tool_calls", ())
    ]
    return "\n\n".join([*([f"You: {content}"] if content else ()), *calls])
