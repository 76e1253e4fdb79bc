"""A kind of agent in tests: its settings, and the messages that make its agent do something."""

import json
import shlex
from pathlib import Path
from typing import Any

from tests.fake_model import FakeModel


class Kind:
    """Each of the messages below has the agent do one thing and end its answer with what came of it."""

    # Until an event of a turn: the first one waits for the runtime.
    patience_seconds = 90.0
    # An agent that holds for an answer goes on in the same attempt; any other one ends its attempt.
    holds = True
    # Part of the answer after a loss in a tool: the agent knows of the call.
    knows_of_loss = "outcome unknown"
    # Part of the answer after a denied call.
    knows_of_denial = "denied by the user"

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        """Returns tables of hermes.toml, which lies in `home`; agents may write to `shared`."""
        raise NotImplementedError

    def prepare(self, home: Path) -> None:
        """Does what a user does between writing hermes.toml and the first start."""

    def say(self, text: str) -> str:
        raise NotImplementedError

    def stream(self) -> str:
        """Streams words without end."""
        raise NotImplementedError

    def run(self, command: str) -> str:
        """Runs a command as a tool that needs no approval."""
        raise NotImplementedError

    def run_approved(self, command: str, *, is_lost: bool = False) -> str:
        """Runs one that needs an approval. With `is_lost` the process that asks ends before the answer."""
        raise NotImplementedError

    def ask(self, question: str, *, is_lost: bool = False) -> str:
        raise NotImplementedError

    def recall(self) -> str:
        """Answers with the first message of the session."""
        raise NotImplementedError

    def spend(self, tokens: int) -> str:
        """Reports a use of at least so many tokens."""
        raise NotImplementedError


class ModelKind(Kind):
    """An agent whose model is the fake one, by directives; it calls tools by these names."""

    shell = "shell"
    clarify = "ask"
    # Whether, after the loss of a process that waited for an answer, its model has to make the call again.
    calls_again = True

    def say(self, text: str) -> str:
        return f"[[normal text={shlex.quote(text)}]] please"

    def stream(self) -> str:
        return "[[slow interval=0.05 count=100000]] please"

    def run(self, command: str) -> str:
        return self._calls(self._shell(command))

    def run_approved(self, command: str, *, is_lost: bool = False) -> str:
        return self._waiting(self._shell(command), is_lost=is_lost)

    def ask(self, question: str, *, is_lost: bool = False) -> str:
        return self._waiting({"name": self.clarify, "arguments": {"question": question}}, is_lost=is_lost)

    def recall(self) -> str:
        return "[[recite]] please"

    def spend(self, tokens: int) -> str:
        return f"[[normal text=counted usage={tokens}]] please"

    def _shell(self, command: str) -> dict[str, Any]:
        return {"name": self.shell, "arguments": {"command": command}}

    def _waiting(self, call: dict[str, Any], *, is_lost: bool) -> str:
        return self._calls(*[call] * (2 if is_lost and self.calls_again else 1))

    def _calls(self, *calls: dict[str, Any]) -> str:
        """One call a round; the answer quotes the results."""
        # Two brackets in a row would end the directive.
        rounds = json.dumps([[call] for call in calls]).replace("]]", "] ]")
        return f"[[tools quote=on calls={shlex.quote(rounds)}]] please"


def toml_list(*values: object) -> str:
    return json.dumps([str(value) for value in values])
