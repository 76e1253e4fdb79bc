"""Errors of a clip or of an engine: the reason, a hint, and for a clip whether a retry can help."""


class CannotTranscribe(Exception):
    """The clip has no transcript; `again` is true when a retry may succeed."""

    def __init__(self, reason: str, hint: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.again = again


class CannotServe(Exception):
    """An engine cannot work on this host; `hint` says what to do."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


def no_words_found(cautions: tuple[str, ...] = ()) -> CannotTranscribe:
    """For silence, noise, music, and words that are too faint; a caution may be the cause."""
    reasons = ", and ".join(["no words were found in the clip", *cautions])
    return CannotTranscribe(f"nothing was understood: {reasons}", "record it closer to the microphone")
