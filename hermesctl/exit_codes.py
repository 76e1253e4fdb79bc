"""The exit codes, each with one meaning that scripts may rely on."""

import enum


class Exit(enum.IntEnum):
    """The result of a command."""

    DONE = 0
    BUG = 1
    USAGE = 2
    INTERRUPTED = 3
    TURN_FAILED = 4
    REFUSED = 5
    NOT_RUNNING = 69
    LOCKED = 75
    SETTINGS = 78
    # As shells count them: 128 and the signal's number.
    CTRL_C = 130
    BROKEN_PIPE = 141
