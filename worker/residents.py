"""Processes that live as long as their worker: the end of an attempt spares them.

A resident is a child of the worker, and stays its child until the worker reaps it, so its pid cannot come to
name another process. The processes below a resident are spared with it, because only children of the worker
are ended (descendants.py). One that loses its parent becomes a child of the worker and is no resident: it
ends with the attempt like any other. All of them end with the cell.
"""

_residents: set[int] = set()


def add(pid: int) -> None:
    """Spares this child of the worker from now on; the caller reaps it."""
    _residents.add(pid)


def remove(pid: int) -> None:
    """Ends its protection: it has been reaped, or it is to end with the attempt."""
    _residents.discard(pid)


def pids() -> frozenset[int]:
    return frozenset(_residents)
