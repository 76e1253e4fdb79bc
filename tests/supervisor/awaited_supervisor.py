"""A supervisor that opens its control socket and goes on only when the first request lies in it."""

from ipc.endpoints import find_places
from ipc.sockets import LoopSocket, Receive, Wire
from supervisor import app, entry


class _Awaited(Wire):
    def router(self, path: str, receive: Receive, *, handover: bool = False) -> LoopSocket:
        opened = super().router(path, receive, handover=handover)
        if path == find_places(None).control:
            opened._socket.poll()
        return opened


if __name__ == "__main__":
    assert hasattr(app, "Wire")
    app.Wire = _Awaited
    entry.main()
