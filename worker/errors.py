"""Errors that end an attempt: the fault, a hint, and whether a retry can help."""

from ipc.messages import QuestionKind


class AttemptError(Exception):
    """The attempt fails. `again` is true when another attempt may succeed.

    `outage` means that the model could not be reached; its server asks for a pause of `wait_seconds`.
    `cannot_start` means that the agent cannot be started as it is configured, whatever the turn is about.
    """

    def __init__(self, error: str, hint: str, *, again: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint
        self.again = again
        self.cannot_start = False
        self.outage = False
        self.wait_seconds = 0


class HumanNeeded(Exception):
    """Not a fault: the attempt ends with a question, about the open tool call `call` if that is not empty."""

    def __init__(self, kind: QuestionKind, text: str, choices: tuple[str, ...], call: str) -> None:
        super().__init__(call)
        self.kind = kind
        self.call = call
        self.text = text
        self.choices = choices


class InputNeeded(Exception):
    """Not a fault: a running tool call needs the answer of a person."""

    def __init__(self, text: str, choices: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.text = text
        self.choices = choices


class AgentError(AttemptError):
    """The agent cannot be found, is misconfigured, or does not come to an end."""


class ModelError(AttemptError):
    """The language model did not answer; with `falls_back` the next model of the agent is asked instead."""

    falls_back = False
    endpoint = ""  # of an outage


class ContextOverflow(ModelError):
    """The conversation is longer than the model can read."""
