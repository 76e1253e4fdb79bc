"""`/v1/audio/transcriptions` with the SDK of OpenAI; a server played here has the words."""

from collections.abc import Iterator

import openai
import pytest

from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import gateway_sdk
from tests.service import Service, settings_for
from tests.stt_service.sounds import clip
from tests.stt_service.test_remote import server
from tests.waiting import until

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    with server(200, {"text": " from far away"}) as made:
        address = made.remote["base_url"]
        stt = f'engine = "openai"\nbase_url = "{address}"\nmodel = "whisper-1"'
        settings = settings_for(model_server, workers="count = 1", stt=stt)
        with Service(tmp_path_factory.mktemp("service") / "home", settings) as service:
            until(lambda: [row for row in service.show("services") if row["state"] == "ready"])
            yield service


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with gateway_sdk(gateway) as client:
        yield client


def test_a_clip_is_transcribed_and_leaves_nothing_behind(sdk: openai.OpenAI, service: Service) -> None:
    path = clip("young_man")
    assert sdk.audio.transcriptions.create(model="whisper-1", file=path).text == "from far away"
    text = sdk.audio.transcriptions.create(model="any", file=path, response_format="text")
    assert text == "from far away\n"
    verbose = sdk.audio.transcriptions.create(model="any", file=path, response_format="verbose_json")
    assert (verbose.text, verbose.segments) == ("from far away", None)
    assert float(verbose.duration) > 1
    until(lambda: not list(service.places.clips.iterdir()))
    assert service.show("sessions") == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"response_format": "srt"}, 400),
        ({"response_format": "vtt"}, 400),
        ({"timestamp_granularities[]": "word"}, 400),
        ({"stream": "true"}, 400),
        ({"colour": "red"}, 400),
    ],
    ids=str,
)
def test_what_is_not_known_is_not_promised(
    gateway: GatewayProcess, fields: dict[str, str], status: int
) -> None:
    files = {"file": ("note.ogg", clip("young_man").read_bytes(), "audio/ogg")}
    answer = gateway.client().post("/v1/audio/transcriptions", files=files, data=fields)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "invalid")
    assert list(gateway.places.clips.iterdir()) == []


def test_clips_that_are_none_are_refused_by_name(gateway: GatewayProcess) -> None:
    client = gateway.client()
    path = "/v1/audio/transcriptions"
    assert client.post(path, json={"file": "x"}).status_code == 415
    assert client.post(path, files={"audio": b"x"}).status_code == 400
    assert client.post(path, files={"file": b"no sound at all"}).status_code == 400
    assert client.post(path, files={"file": b"x" * (25 * MIB + 1)}).status_code == 413
    until(lambda: not list(gateway.places.clips.iterdir()))
