"""How a command fails: one sentence that names the fault, one that names the remedy, and an exit code."""

from hermesctl.exit_codes import Exit


class CommandError(Exception):
    """Ends the command; main prints it to stderr and exits with `code`."""

    def __init__(self, fault: str, hint: str, code: int = Exit.BUG) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint
        self.code = code


class NotRunning(CommandError):
    """Nobody answers at the control socket, or whoever did has gone."""

    def __init__(self, fault: str = "the supervisor is not running", hint: str = "hermesctl start") -> None:
        super().__init__(fault, hint, Exit.NOT_RUNNING)
