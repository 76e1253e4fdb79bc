"""An agent with several models: an outage of the first does not stop its turns; outages are per endpoint."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

SETTINGS = """
[model]
base_url = "{first}"
name = "fake"
[models.spare]
base_url = "{second}"
name = "substitute"
api_key_file = "key"
[agents.default]
fallback = ["spare"]
[agents.alone]
[sessions.alone]
agent = "alone"
[stt]
engine = "off"
[workers]
count = 2
"""
KEY = "sk-of-the-substitute"


@pytest.fixture
def second(second_model: FakeModel) -> FakeModel:
    return second_model


@pytest.fixture
def service(tmp_path: Path, model: FakeModel, second: FakeModel) -> Iterator[Service]:
    home = tmp_path / "home"
    made = Service(home, SETTINGS.format(first=model.base_url, second=second.base_url))
    (home / "key").write_text(KEY)
    (home / "key").chmod(0o600)
    with made:
        yield made


def test_an_outage_of_the_first_model_does_not_stop_turns(
    service: Service, model: FakeModel, second: FakeModel
) -> None:
    model.set_mode("500", status=503)
    listener = service.listen("demo")
    service.say("demo", "hello")
    done = listener.ending("demo/1")
    assert (done.type, done.fields["model"]) == ("turn.done", "substitute")
    assert any(note.endswith("; substitute answers now") for note in listener.notes)
    assert second.requests()[0].key == KEY
    [outage] = service.status()["outages"]
    assert (outage["endpoint"], outage["turns"]) == (model.base_url, 0)
    # The agent that has no other model waits; the one that has goes on.
    service.say("alone", "hello")
    until(lambda: service.status()["outages"][0]["turns"] == 1)
    service.say("demo", "again")
    assert listener.ending("demo/2").fields["model"] == "substitute"
    told = service.hermesctl("why", "demo/2").stdout
    assert "by substitute" in told
    # Back again, the first model answers: a turn that waits, or the next one, finds that out.
    model.set_mode("normal")
    assert service.listen("alone").ending("alone/1", 90).fields["model"] == "fake"
    until(lambda: service.status()["outages"] == [])
    service.say("demo", "once more")
    assert listener.ending("demo/3").fields["model"] == "fake"
    assert KEY not in service.log()
