"""The id of an agent's own session, kept in the workspace: a later process loads the session by it.

The file is written before a prompt is sent and a while after it has ended. `known_turns` counts the turns
that the agent's session has whole; a turn that was cut off is not among them, and neither is one that ended
just before the agent was killed: agents store their last answer later. The agent can write to the file:
it can only harm itself, since a session that cannot be loaded is replaced by a new one with the journal's
history.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from ipc.messages import Assign
from worker.agents.acp_prompt import turn_number

# Claude Code, killed when its answer was there, had not stored it in 6 of 6 cases; a busy host takes longer.
STORE_SECONDS = 5.0
_FOLDER = ".hermes"
_BYTES_MAX = 64 * 1024


class KeptSession(msgspec.Struct, frozen=True):
    """`program` is the command of the agent: another agent cannot load the session."""

    id: str
    program: tuple[str, ...]
    known_turns: int = 0


_decoder = msgspec.json.Decoder(KeptSession)


def read(folder: str, assign: Assign, program: tuple[str, ...]) -> KeptSession | None:
    """Returns what was kept for this session and agent; None also for a file that is none of ours."""
    try:
        with path(folder, assign).open("rb") as file:
            kept = _decoder.decode(file.read(_BYTES_MAX))
    except (OSError, msgspec.DecodeError):
        return None
    is_possible = kept.program == program and 0 <= kept.known_turns < turn_number(assign)
    return kept if is_possible else None


def write(file: Path, kept: KeptSession) -> None:
    """Replaces the file at once. Where it cannot be written, the next process begins a new session."""
    new = file.with_suffix(".new")
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        new.write_bytes(msgspec.json.encode(kept))
        os.replace(new, file)


def path(folder: str, assign: Assign) -> Path:
    """Without namespaces all sessions have one folder, so the name tells them apart."""
    name = hashlib.sha256(f"{assign.agent.name}\0{assign.session}".encode()).hexdigest()[:16]
    return Path(folder, _FOLDER, f"acp-{name}.json")
