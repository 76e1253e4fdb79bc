"""Why a clip gave no words, or the service cannot work: a sentence, its remedy, and whether to try again."""


class CannotHear(Exception):
    """This clip gives no words; `again` says whether another try could do better."""

    def __init__(self, reason: str, hint: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.again = again


class CannotServe(Exception):
    """An engine cannot work here; `hint` mends it."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


def nothing_understood(cautions: tuple[str, ...] = ()) -> CannotHear:
    """Silence, noise, music, or words too faint to be sure of; cautions may be the reason."""
    reasons = ", and ".join(["no speech was found in the clip", *cautions])
    return CannotHear(f"nothing was understood: {reasons}", "speak closer to the microphone")
