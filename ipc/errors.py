"""Errors of frames, sockets and folders; each has a fault and a hint."""


class WireError(Exception):
    """A frame, a socket or a folder does not meet the protocol."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


class FrameTooLarge(WireError):
    """A frame is over the size limit; it was not sent, or not read."""


class WrongVersion(WireError):
    """The peer uses another version of the protocol."""


class Unreadable(WireError):
    """The bytes are not a message of the expected direction."""


class Unwritable(WireError):
    """A message has a value that no frame can carry."""


class BadPlace(WireError):
    """The place in a request for the next page was not given by a page of that table."""

    def __init__(self) -> None:
        super().__init__("a table cannot go on at this place", "begin it again, with an empty `after`")


class PlaceError(WireError):
    """A folder or socket path cannot be used."""
