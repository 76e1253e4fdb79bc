"""A supervisor that opens its control socket and goes on only when somebody has connected to it."""

import select
from typing import Any

from ipc.places import find_places
from ipc.server import Server
from supervisor import app, entry


class _Awaited(Server):
    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        if path == find_places(None).control:
            # The look whether anybody listens, then the one who asks.
            for _ in range(2):
                select.select([self._listener], [], [])
                self._accept()


if __name__ == "__main__":
    assert hasattr(app, "Server")
    app.Server = _Awaited
    entry.main()
