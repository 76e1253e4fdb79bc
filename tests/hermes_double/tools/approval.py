"""Whether a person is there to be asked; for each context, as the original has it."""

from contextvars import ContextVar

is_interactive: ContextVar[bool] = ContextVar("is_interactive", default=False)


def set_hermes_interactive_context(interactive: bool) -> object:
    return is_interactive.set(interactive)
