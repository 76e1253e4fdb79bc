"""A person who speaks: real speech through the microphone of the browser, and the real tiny.en."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenConsole
from tests.console.microphone import MICROPHONE, SPOKEN, dropping
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.stt_service.sounds import SAID, clip
from tests.stt_service.wording import errors
from tests.waiting import until
from tests.weights import pulled

# Loading the weights takes seconds, many on a machine that has much else to do.
START_SECONDS = 90.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("voice") / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    settings = settings_for(model_server, workers="count = 1", stt='deadline = "3m"')
    with Service(home, settings) as service:
        yield service


def hears(service: Service) -> None:
    def state() -> str:
        (row,) = [row for row in service.show("services") if row["service"] == "stt"]
        return str(row["state"])

    until(lambda: state() == "ready", START_SECONDS)


def test_speech_becomes_the_right_words_an_answer_and_a_clip_that_plays(
    speaker: OpenConsole, service: Service
) -> None:
    hears(service)
    page = speaker(permissions=["microphone"]).login(session="spoken")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.page.get_by_role("group", name="Recording")).to_be_visible()
    # The clip has eleven seconds.
    expect(page.page.locator(".recording-clock")).to_have_text("0:12")
    page.page.get_by_role("button", name="Send the recording").click()
    said = page.turns("done").locator(".said")
    expect(said).to_have_text(re.compile("country", re.IGNORECASE))
    assert errors(SAID[SPOKEN], said.inner_text()) <= 3, said.inner_text()
    page.page.get_by_role("button", name="Play the clip").click()
    clip_path = page.page.locator("audio").get_attribute("src")
    assert clip_path is not None
    answer = page.context.request.get(page.gateway.address + clip_path)
    assert answer.ok
    assert len(answer.body()) > 10_000


def test_a_dropped_sound_file_is_sent_and_an_upload_that_is_cut_goes_on(
    console: OpenConsole, service: Service
) -> None:
    hears(service)
    page = console().login(session="dropped")
    page.page.route("**/messages", lambda route: route.abort(), times=1)
    dropping(page, "young_man.ogg", "audio/ogg", clip("young_man").read_bytes())
    expect(page.turns("done").locator(".said")).to_contain_text(re.compile("young man", re.IGNORECASE))
    assert len(service.show("turns", session="dropped")) == 1


def test_a_clip_without_words_says_so_and_offers_another_try(console: OpenConsole, service: Service) -> None:
    hears(service)
    page = console().login(session="nothing")
    dropping(page, "empty.wav", "audio/wav", bytes(2_000))
    aside = page.page.locator(".aside.fault")
    expect(aside).to_contain_text("Not understood")
    expect(aside.get_by_role("button", name="Transcribe again")).to_be_visible()
