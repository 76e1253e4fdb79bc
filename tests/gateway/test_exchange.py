"""One request by itself: its numbers, the bounds of its body, and the names and pages it may come from."""

import asyncio

import pytest

from gateway.errors import HttpError
from gateway.gateway_options import Options
from gateway.origin_check import OriginCheck
from tests.gateway.one_exchange import exchange_of


@pytest.mark.parametrize("value", ["%C2%B2", "-1", "1.5", "", "1" * 19])
def test_a_number_has_18_ascii_digits_at_most(value: str) -> None:
    exchange, _ = exchange_of(query=f"limit={value}".encode())
    with pytest.raises(HttpError, match="limit is not a number") as refused:
        exchange.number("limit", "limit")
    assert refused.value.status == 400
    exchange, _ = exchange_of(query=b"limit=" + b"9" * 18)
    assert exchange.number("limit", "limit") == 10**18 - 1


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read() -> None:
    exchange, _ = exchange_of(headers=((b"content-length", b"11"),))
    with pytest.raises(HttpError, match="more than 10 bytes"):
        asyncio.run(exchange.body(10))
    assert asyncio.run(exchange.receive())["type"] == "http.request", "nothing was read"


def test_a_body_is_bounded_over_all_its_parts_and_taken_only_whole() -> None:
    for parts, fault in (
        ((b"12345", b"6789", b"01"), "more than 10 bytes"),
        ((b"1",), "before the body did"),
    ):
        exchange, _ = exchange_of(None, b"", (), "http", *parts)
        with pytest.raises(HttpError, match=fault):
            asyncio.run(exchange.body(10))


def is_accepted(options: Options, host: str, *origins: str, scheme: str = "http") -> bool:
    headers = ((b"host", host.encode()), *((b"origin", origin.encode()) for origin in origins))
    try:
        OriginCheck(options).check(exchange_of(headers=headers, scheme=scheme)[0])
    except HttpError:
        return False
    return True


@pytest.mark.parametrize(
    ("listen", "accepted", "refused"),
    [
        ("127.0.0.1:80", ("localhost", "127.0.0.1:80", "[::1]:80"), ("0.0.0.0", "192.0.2.1")),
        ("0.0.0.0:80", ("localhost", "127.0.0.1"), ("0.0.0.0", "192.0.2.1")),
        ("192.0.2.1:80", ("192.0.2.1",), ("localhost", "127.0.0.1", "0.0.0.0")),
    ],
)
def test_a_gateway_has_the_names_of_the_address_where_it_listens(
    listen: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    options = Options(listen, "", "", "", "", hosts=("Agent.example.org",))
    for host in (*accepted, "agent.example.org", "AGENT.example.org:8080"):
        assert is_accepted(options, host), host
    for host in (*refused, "agent.example.org.evil.example", "me@localhost"):
        assert not is_accepted(options, host), host


def test_every_origin_of_a_request_is_its_own_or_one_of_the_settings() -> None:
    options = Options("127.0.0.1:80", "", "", "", "", origins=("https://App.example.org",))
    own, other, foreign = "http://localhost", "https://app.example.org", "https://evil.example"
    for origins in ((own,), (other,), (own, other), ("https://localhost",)):
        assert is_accepted(options, "localhost", *origins)
    for origins in ((foreign,), (own, foreign), (foreign, own)):
        assert not is_accepted(options, "localhost", *origins)


def test_over_tls_a_page_without_tls_is_another_one() -> None:
    options = Options("127.0.0.1:80", "", "", "", "")
    for scheme in ("https", "wss"):
        assert is_accepted(options, "localhost", "https://localhost", scheme=scheme)
        assert not is_accepted(options, "localhost", "http://localhost", scheme=scheme)
