"""docs/openai.md has the headers, tasks and formats of the code, and its first example works as printed."""

import re

import pytest

from gateway.openai import client_tasks, open_requests, transcriptions_api
from tests.gateway.gateway_process import GatewayProcess
from tests.house_rules import ROOT

TEXT = (ROOT / "docs" / "openai.md").read_text()


def test_every_header_that_is_read_is_documented() -> None:
    code = "".join(path.read_text() for path in (ROOT / "gateway" / "openai").glob("*.py"))
    for header in set(re.findall(r'b"(x-[a-z-]+)"', code)) - {"x-accel-buffering", "x-should-retry"}:
        assert f"`{header}" in TEXT.lower(), header


def test_every_task_is_documented() -> None:
    table = TEXT.partition("| task | answer |")[2].partition("\n\n")[0]
    known = {"title_generation", "emoji_generation", *client_tasks.NOTHING}
    assert set(re.findall(r"`(\w+_generation)`", table)) == known


def test_the_formats_and_times_are_documented() -> None:
    assert "`json`, `text` or `verbose_json`" in TEXT
    assert transcriptions_api.FORMATS == ("json", "text", "verbose_json")
    assert open_requests.AGAIN_SECONDS == 3.0
    assert "else after three\nseconds" in TEXT


def test_the_first_example_works_as_it_is_printed(gateway: GatewayProcess) -> None:
    (example, *_) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:8790" in example
    example = example.replace("http://127.0.0.1:8790", gateway.address)
    names: dict[str, object] = {}
    exec(example.replace("hermes_…", gateway.first_secret), names)
    answer = names["answer"]
    assert "You said: Hello" in str(answer)
    client = names["client"]
    getattr(client, "close", pytest.fail)()
