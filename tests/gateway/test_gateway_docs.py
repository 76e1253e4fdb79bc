"""docs/gateway.md has the routes and limits of the code."""

import json
import os
import re
import subprocess

from gateway import limiter
from gateway.errors import CODES
from gateway.routes import routes
from tests.gateway.gateway_process import GatewayProcess
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


def test_the_examples_work_as_they_are_printed(gateway: GatewayProcess) -> None:
    """In their order; only the first block, with address and token, is replaced by those of this gateway."""
    first, *examples = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^(\w+)=", first, re.MULTILINE)) == {"HERMES", "TOKEN"}
    environment = {**os.environ, "HERMES": gateway.address, "TOKEN": gateway.first_secret}
    outputs = [
        subprocess.run(["bash", "-c", example], env=environment, capture_output=True, text=True).stdout
        for example in examples
    ]
    me, accepted, interrupted, events = outputs
    assert json.loads(me)["name"] == "first"
    assert json.loads(accepted)["seq"] == 1
    assert json.loads(interrupted)["session"] == "demo"
    assert "id: 1\ndata: " in events
    assert "message.accepted" in events
