"""A real gateway process as a test holds it, and HTTP clients of it; the supervisor is a `Service`."""

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import msgspec

from gateway.tokens import TokenStore
from ipc import interpreter
from ipc.places import Places
from ipc.service_messages import ServiceStart
from tests import warm
from tests.waiting import DEADLINE_SECONDS, until

# Longer than any answer takes on a busy machine.
TIMEOUT_SECONDS = 60.0


class GatewayProcess:
    """Started as the supervisor starts it; it may be killed and started again on the same port."""

    def __init__(self, places: Places, listen: str = "127.0.0.1:0", **options: Any) -> None:
        self.places = places
        self.log = places.state / "gateway.log"
        self._listen = listen
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""
        self._clients: list[httpx.Client] = []

    def __enter__(self) -> "GatewayProcess":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        if self.process is not None:
            self.kill()

    def start(self) -> None:
        """Returns when it listens."""
        self.launch()
        until(self._has_address)

    def launch(self) -> None:
        options = {
            "listen": self._listen,
            "socket": self.places.gateway,
            "clips": str(self.places.clips),
            "tokens": str(self.places.tokens),
            "token": str(self.places.token),
            **self._options,
        }
        endpoint = str(self.places.runtime / "gateway-test.sock")
        start = ServiceStart("gateway", 1, endpoint, "gateway-1", options, os.getpid())
        with self.log.open("wb") as log:
            self.process = warm.Popen(
                interpreter.command("gateway"), stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(start) + b"\n")
        self.process.stdin.close()

    def _has_address(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        found = re.search(r"^gateway: (https?://\S+)$", self.log.read_text(), re.MULTILINE)
        if found is not None:
            self.address = found[1]
            # The same port after a restart.
            self._listen = found[1].partition("://")[2]
        return found is not None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)

    @property
    def first_secret(self) -> str:
        return self.places.token.read_text().strip()

    def token(self, name: str, owner: str = "", rights: str = "talk,watch,operate") -> str:
        """The secret of a new token."""
        store = TokenStore(self.places.tokens)
        try:
            return store.add(name, owner, rights.split(","))[1]
        finally:
            store.close()

    def revoke(self, name: str) -> None:
        store = TokenStore(self.places.tokens)
        try:
            store.revoke(name)
        finally:
            store.close()

    def client(
        self, secret: str | None = None, verify: Any = False, address: str | None = None
    ) -> httpx.Client:
        """An HTTP client with the first token, another one, or with none when that is empty.

        To load the certificates of the system takes more time than most tests. `address` is the client's own.
        """
        transport = httpx.HTTPTransport(verify=verify, local_address=address)
        secret = self.first_secret if secret is None else secret
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        client = httpx.Client(
            base_url=self.address, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport
        )
        self._clients.append(client)
        return client


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, which has a fault and a hint."""
    error = answer.json()["error"]
    assert error["message"], answer.text
    assert error["hint"], answer.text
    return answer.status_code, error["code"]


def lone_places(folder: Path) -> Places:
    """Folders of an instance whose supervisor does not run."""
    places = Places(folder, folder, folder / "run")
    places.runtime.mkdir(mode=0o700, parents=True)
    places.clips.mkdir(mode=0o700)
    return places
