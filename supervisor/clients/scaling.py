"""Translates a `scale` request to a number of seats, or to a refusal."""

from ipc import messages as wire
from ipc.cpus import available_cpus, seats_for

# As for `[workers] count` and `per_cpu`: more is a typing error that would fill a machine.
SEATS_MAX = 10_000
PER_CPU_MAX = 1000.0


def seats_asked(request: wire.Scale) -> int | wire.Refused:
    """Return the seats that a request with a number in it means."""
    if request.seats is not None and request.per_cpu is not None:
        return wire.Refused("seats and seats per CPU are both given", "give one of the two", code="invalid")
    if request.per_cpu is not None:
        if not 0 < request.per_cpu <= PER_CPU_MAX:
            return wire.Refused(
                f"{request.per_cpu:g} seats per CPU cannot be had",
                f"use a number above 0 and at most {PER_CPU_MAX:g}, such as 2 or 0.5",
                code="invalid",
            )
        return min(SEATS_MAX, seats_for(request.per_cpu))
    if request.seats is None or not 1 <= request.seats <= SEATS_MAX:
        hint = f"use a number from 1 to {SEATS_MAX}; `hermesctl drain` begins no new turns"
        return wire.Refused(f"{request.seats} seats cannot be had", hint, code="invalid")
    return request.seats


def present(seats: int) -> str:
    """Return the number of seats, in a sentence."""
    cpus = available_cpus()
    return f"{seats} seats on {cpus:g} CPUs, {seats / cpus:.2g} per CPU"
