"""Namespaces: the session `chat` of a token with the owner `anna` is the session `anna:chat` of the journal.

The owner's clients never see the prefix. Names and ids that come in are mapped before anything is asked of
the supervisor, so a client cannot name what is not its own: `bob:chat` of anna is `anna:bob:chat`. Names and
ids in what goes out are mapped back. A token without an owner uses the journal's names as they are, all of
them.

Turns are SESSION/N and questions SESSION/N#N, so they are mapped like sessions. Ids of messages name no
session; a handler that is given one looks its session up and asks `owns`.
"""

from dataclasses import dataclass
from typing import Any

# Fields of events and rows that hold the name of a session, or an id that begins with one.
_NAMES = frozenset({"session", "turn", "turns", "question", "retries", "from", "id", "expect_turn"})
# Sentences of the supervisor that may name one. Texts of people and agents are not among them.
_SENTENCES = frozenset({"note", "error", "hint", "reason", "waits", "words", "detail", "unwritten"})


@dataclass(frozen=True)
class Namespace:
    owner: str

    @property
    def prefix(self) -> str:
        return f"{self.owner}:" if self.owner else ""

    def inward(self, name: str) -> str:
        """The journal's name of the owner's session, turn or question."""
        return self.prefix + name

    def owns(self, name: str | None) -> bool:
        return name is not None and name.startswith(self.prefix)

    def outward(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    def sentence(self, text: str) -> str:
        return text.replace(self.prefix, "") if self.prefix else text

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row or an event as the owner's clients see it."""
        return {key: self._value(key, value) for key, value in row.items()} if self.prefix else row

    def seat(self, row: dict[str, Any]) -> dict[str, Any]:
        """A worker as an operator sees it: of a session that is not the owner's only that there is one."""
        if row.get("session") is None or self.owns(row["session"]):
            return self.row(row)
        return row | {"session": None, "turn": None, "words": ""}

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            if key in _NAMES:
                return self.outward(value)
            return self.sentence(value) if key in _SENTENCES else value
        if isinstance(value, dict):
            return self.row(value)
        if isinstance(value, list | tuple):
            return [self._value(key, each) for each in value]
        return value
