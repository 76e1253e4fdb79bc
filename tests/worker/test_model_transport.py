"""The bounds on a response body, where parts of it arrive cut at any byte."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from worker.model_faults import Misbehaviour
from worker.model_transport import client_options

BYTES_MAX = 16 * 1024 * 1024
LONG = b"x" * (3 * 1024 * 1024)


class Body(httpx2.AsyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self._parts = parts
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part

    async def aclose(self) -> None:
        self.is_closed = True


def received(body: Body, *, status: int = 200) -> int:
    """Returns the count of bytes that passed the check."""

    async def read() -> int:
        response = httpx2.Response(status, stream=body)
        for check in client_options("http://127.0.0.1/v1", BYTES_MAX)["event_hooks"]["response"]:
            await check(response)
        return len(await response.aread())

    return asyncio.run(read())


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_the_end_of_an_event_counts_wherever_it_is_cut(end: bytes) -> None:
    for place in range(len(end) + 1):
        body = Body(LONG + end[:place], end[place:] + LONG)
        assert received(body) == 2 * len(LONG) + len(end)
        assert body.is_closed


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n \n"])
def test_an_event_without_an_end_is_refused_in_its_second_part(end: bytes) -> None:
    with pytest.raises(Misbehaviour):
        received(Body(LONG + end, LONG))


@pytest.mark.parametrize(("status", "bytes_max"), [(200, BYTES_MAX), (400, 256 * 1024), (503, 256 * 1024)])
def test_a_body_may_have_its_limit_and_no_byte_more(status: int, bytes_max: int) -> None:
    events = b"\n\n" * (bytes_max // 2)
    assert received(Body(events), status=status) == bytes_max
    with pytest.raises(Misbehaviour):
        received(Body(events, b"\n"), status=status)


@pytest.mark.parametrize(
    ("base_url", "trusts"),
    [
        ("http://127.0.0.1:8000/v1", False),
        ("http://[::1]/v1", False),
        ("http://localhost/v1", False),
        ("http://192.0.2.1/v1", True),
        ("https://localhost.example/v1", True),
    ],
)
def test_a_proxy_of_the_environment_is_used_for_other_machines_only(base_url: str, trusts: bool) -> None:
    assert client_options(base_url, BYTES_MAX)["trust_env"] is trusts
