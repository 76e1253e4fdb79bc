"""What can be wrong with a frame or a place; every error says the fault and carries a hint that mends it."""


class WireError(Exception):
    """Something about a frame, a socket or a folder is not as the protocol wants it."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


class FrameTooLarge(WireError):
    """A frame is over the size limit; it was not sent, or not read."""


class WrongVersion(WireError):
    """The peer speaks another version of the protocol."""


class Unreadable(WireError):
    """The bytes are not a message of the expected direction."""


class Unwritable(WireError):
    """A message holds something that no frame can carry."""


class BadPlace(WireError):
    """The place after which a table is to go on was not given by a page of that table."""

    def __init__(self) -> None:
        super().__init__("a table cannot go on at this place", "begin it again, with an empty `after`")


class PlaceError(WireError):
    """A folder or socket path cannot be used."""
