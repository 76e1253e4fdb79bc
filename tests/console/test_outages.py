"""What dies while the page is open: the supervisor, the gateway. Nothing is lost, nothing comes twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenConsole
from tests.console.console_page import TIMEOUT_MS, slow
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.service import Service, settings_for
from tests.waiting import until

COUNT = 80
WHOLE = " ".join(f"word{number}" for number in range(COUNT))


@pytest.fixture
def service(tmp_path: Path, model_server: FakeModel) -> Iterator[Service]:
    with Service(tmp_path / "home", settings_for(model_server, workers="count = 1")) as service:
        yield service


@pytest.fixture
def gateway(service: Service) -> Iterator[GatewayProcess]:
    with GatewayProcess(service.places) as gateway:
        yield gateway


def test_a_supervisor_killed_in_mid_answer_is_waited_for_and_the_answer_goes_on(
    console: OpenConsole, service: Service
) -> None:
    page = console().login(session="killed")
    page.say(f"[[goon count={COUNT} interval=0.05]] go")
    expect(page.turns("running").locator(".words")).to_contain_text("word9")
    service.kill()
    expect(page.page.get_by_text("The supervisor is away")).to_be_visible()
    expect(page.turns().locator(".words").first).to_contain_text("word9")
    page.choose_mode("queue")
    page.say("typed while it was away")
    expect(page.waiting).to_contain_text("kept, is sent when the service is back")
    page.page.reload()
    expect(page.waiting).to_contain_text("typed while it was away")
    service.start()
    expect(page.turns("done")).to_have_count(2, timeout=2 * TIMEOUT_MS)
    answer = page.turns("done").first.locator(".words").all_inner_texts()
    assert " ".join(" ".join(answer).split()) == WHOLE
    expect(page.turns("done").last).to_contain_text("You said: typed while it was away")
    expect(page.waiting).to_have_count(0)


def test_without_a_gateway_the_page_itself_still_opens(console: OpenConsole, gateway: GatewayProcess) -> None:
    page = console().login(session="shell")
    until(lambda: page.page.evaluate("caches.match('/console/vendor.js').then(Boolean)"))
    gateway.kill()
    page.page.reload()
    expect(page.page.get_by_text("connecting …")).to_be_visible()
    gateway.start()
    expect(page.box).to_be_visible()
    kept_urls = "caches.open('hermes-shell').then((c) => c.keys()).then((all) => all.map((each) => each.url))"
    assert [url for url in page.page.evaluate(kept_urls) if "/api/" in url] == []


def test_a_killed_gateway_is_waited_for_and_its_pages_agree_with_the_journal(
    console: OpenConsole, gateway: GatewayProcess, service: Service
) -> None:
    page = console().login(session="gone")
    page.say(slow(count=COUNT))
    expect(page.turns("running").locator(".words")).to_contain_text("word5")
    gateway.kill()
    expect(page.page.get_by_text("The gateway does not answer")).to_be_visible()
    page.choose_mode("queue")
    page.say("typed without a gateway")
    gateway.start()
    expect(page.page.get_by_text("Connected again. Nothing was lost.")).to_be_visible()
    expect(page.turns("done")).to_have_count(2)
    expect(page.turns("done").first.locator(".words")).to_contain_text(WHOLE)
    events = service.listen("gone")
    events.ending("gone/2")
    assert [event.type for event in events.events].count("message.accepted") == 2
