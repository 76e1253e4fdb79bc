"""Whether a person is there to be asked; for each context, as the original has it."""

from collections.abc import Callable
from contextvars import ContextVar

# As the setting in its home says, which anyone who writes there can change.
_get_approval_mode: Callable[[], str] = lambda: "off"  # noqa: E731
is_interactive: ContextVar[bool] = ContextVar("is_interactive", default=False)


def set_hermes_interactive_context(interactive: bool) -> object:
    return is_interactive.set(interactive)
