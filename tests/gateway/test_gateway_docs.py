"""docs/gateway.md has the routes and limits of the code."""

import re

from gateway import limiter
from gateway.errors import CODES
from gateway.routes import routes
from tests.house_rules import ROOT

TEXT = (ROOT / "docs" / "gateway.md").read_text()


def test_every_route_is_documented_with_its_right() -> None:
    written = re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \| (\w+) \| .+ \|$", TEXT, re.MULTILINE)
    assert written == [(route.method, route.path, route.right) for route in routes()]


def test_every_status_is_documented_with_its_code() -> None:
    written = re.findall(r"^\| (\d+) \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert [(int(status), code) for status, code in written] == sorted(CODES.items())


def test_the_limits_are_documented() -> None:
    streams, uploads = limiter.STREAMS_PER_TOKEN_MAX, limiter.UPLOADS_PER_TOKEN_MAX
    assert (
        f"have {streams:,} streams and {['no', 'one', 'two', 'three', 'four'][uploads]} uploads open" in TEXT
    )
