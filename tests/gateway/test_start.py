"""The gateway as a service: it reports its address, and why it cannot start."""

import asyncio
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from gateway.__main__ import listen
from gateway.gateway_options import Options
from supervisor import gateway_spec
from supervisor.config.settings import Settings
from supervisor.services import ServiceSpec
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import lone_places
from tests.service import Service, settings_for
from tests.services.watching import QUICK, has_ended, running
from tests.waiting import until


def spec(folder: Path, **options: Any) -> ServiceSpec:
    """As the supervisor makes it, on a port of its own."""
    made = gateway_spec.spec(Settings(), lone_places(folder))
    return replace(made, options=made.options | {"listen": "127.0.0.1:0"} | options, restart=QUICK)


def test_it_reports_the_address_that_it_serves_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    async def watch() -> tuple[int, Any]:
        async with running(spec(tmp_path / "home")) as watched:
            ready = await watched.seen("ready")
            answer = await asyncio.to_thread(httpx.get, f"{ready.address}/health")
            assert answer.json()["status"] == "unavailable"
            return answer.status_code, watched.row()["pid"]

    status, pid = asyncio.run(watch())
    assert status == 503
    assert has_ended(pid)


def test_a_service_starts_its_gateway_and_starts_it_again(tmp_path: Path, model_server: FakeModel) -> None:
    """As in every installation: the address and the first token are where `hermesctl` finds them."""
    settings = settings_for(model_server, workers="count = 1", gateway='listen = "127.0.0.1:0"')
    with Service(tmp_path / "home", settings) as service:

        def ready() -> dict[str, Any] | None:
            rows = [row for row in service.show("services") if row["service"] == "gateway"]
            return rows[0] if rows and rows[0]["state"] == "ready" else None

        first = until(ready) or {}
        headers = {"Authorization": f"Bearer {service.places.token.read_text().strip()}"}
        address = f"{first['address']}/api/sessions/demo/messages"
        assert httpx.post(address, json={"text": "hi"}, headers=headers).status_code == 202
        assert service.listen("demo").ending("demo/1").fields["text"] == "You said: hi"
        os.kill(first["pid"], signal.SIGKILL)
        second = until(lambda: row if (row := ready()) and row["pid"] != first["pid"] else None) or {}
        turns = httpx.get(f"{second['address']}/api/turns", headers=headers).json()["turns"]
        assert [row["turn"] for row in turns] == ["demo/1"]


def test_an_address_that_is_taken_is_named_with_a_remedy(tmp_path: Path) -> None:
    async def watch() -> Any:
        async with running(spec(tmp_path / "first")) as watched:
            address = (await watched.seen("ready")).address
            second = spec(tmp_path / "second", listen=address.removeprefix("http://"))
            async with running(second) as other:
                await other.until(lambda: "failed" in other.states())
                return address, next(one for one in other.reports if one.state == "failed")

    address, failed = asyncio.run(watch())
    assert f"{address.removeprefix('http://')} cannot be used: Address already in use" in failed.detail
    assert "[gateway] listen" in failed.hint


def test_options_of_another_version_are_refused_with_a_sentence(tmp_path: Path) -> None:
    async def watch() -> Any:
        async with running(spec(tmp_path / "home", listens="x")) as watched:
            await watched.until(lambda: "failed" in watched.states())
            return next(one for one in watched.reports if one.state == "failed")

    failed = asyncio.run(watch())
    assert "listens" in failed.detail
    assert "[gateway]" in failed.hint


def test_a_connection_whose_client_takes_nothing_is_dropped_by_the_kernel_after_half_a_minute() -> None:
    with listen(Options("127.0.0.1:0", "", "", "", "")) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
