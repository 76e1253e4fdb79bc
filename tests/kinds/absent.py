"""The scenarios that a kind cannot have, each with its reason; docs/agents.md shows the same table."""

from collections.abc import Mapping

_OF_THE_PROTOCOL = {
    "question across a restart": "the protocol has no question to a person except a permission",
    "steer": "the protocol has no message into a running prompt: it waits for the next turn",
}
# By kind, or by the agent of kind acp, then by the name of the scenario.
ABSENT: Mapping[str, Mapping[str, str]] = {
    "acp": _OF_THE_PROTOCOL,
    "hermes acp": _OF_THE_PROTOCOL,
    "Claude Code": _OF_THE_PROTOCOL,
    "opencode": _OF_THE_PROTOCOL
    | {"approval denied": "a denial ends its turn without an answer, and its model is not asked again"},
}
