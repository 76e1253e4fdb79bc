"""Errors of commands: a fault, a hint, and an exit code."""

from hermesctl.exit_codes import Exit


class CommandError(Exception):
    """Ends the command; main prints it to stderr and exits with `code`."""

    def __init__(self, fault: str, hint: str, code: int = Exit.BUG) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint
        self.code = code


class NotRunning(CommandError):
    """No supervisor answers at the control socket, or the one that did is gone."""

    def __init__(self, fault: str = "the supervisor is not running", hint: str = "hermesctl start") -> None:
        super().__init__(fault, hint, Exit.NOT_RUNNING)
