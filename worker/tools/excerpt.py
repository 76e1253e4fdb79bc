"""Keeps the beginning and the end of an output of any length; the middle is cut and counted."""


class Excerpt:
    """Takes bytes without end in bounded memory."""

    def __init__(self, bytes_max: int) -> None:
        self._half = bytes_max // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, content: bytes) -> None:
        room = self._half - len(self._head)
        self._head += content[:room]
        self._tail += content[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            self._left_out += excess
            del self._tail[:excess]

    def text(self) -> str:
        """Returns all of it, or both ends with a line between them that says how much is missing."""
        if not self._left_out:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[… {self._left_out} bytes left out …]\n{tail}"
