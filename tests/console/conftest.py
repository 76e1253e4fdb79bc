"""One browser a process; a service and a gateway for all tests of a module that kill neither.

The driver's event loop counts as running in its thread, and no other test could run one: the driver is closed
behind the last test of this folder.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.console.console_page import ARGUMENTS, CHROMIUM, TIMEOUT_MS, ConsolePage
from tests.console.microphone import flags
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.service import Service, settings_for

OpenConsole = Callable[..., ConsolePage]


@pytest.fixture(scope="session", autouse=True)
def _browser_is_installed() -> None:
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed")


@pytest.fixture(scope="package")
def playwright_driver(_browser_is_installed: None) -> Iterator[Playwright]:
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    browser = playwright_driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def speaking_browser(
    playwright_driver: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """Another one, which has a microphone."""
    arguments = [*ARGUMENTS, *flags(tmp_path_factory.mktemp("sound"))]
    browser = playwright_driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    # Commands that begin with `push` need the approval of a person.
    tables = {"agents.default": 'ask = ["shell(push*)"]'}
    settings = settings_for(model_server, workers="count = 2", turns="waiting_max = 10", **tables)
    with Service(tmp_path_factory.mktemp("service") / "home", settings) as service:
        yield service


@pytest.fixture(scope="module")
def gateway(service: Service) -> Iterator[GatewayProcess]:
    with GatewayProcess(service.places) as gateway:
        yield gateway


@pytest.fixture
def console(browser: Browser, gateway: GatewayProcess) -> Iterator[OpenConsole]:
    """Opens consoles of the module's gateway; each has a browser profile of its own."""
    yield from _opened(browser, gateway)


@pytest.fixture
def speaker(speaking_browser: Browser, gateway: GatewayProcess) -> Iterator[OpenConsole]:
    """The same with a microphone, for pages that have the permission."""
    yield from _opened(speaking_browser, gateway)


def _opened(browser: Browser, gateway: GatewayProcess) -> Iterator[OpenConsole]:
    opened: list[ConsolePage] = []

    def new(**options: Any) -> ConsolePage:
        opened.append(ConsolePage(browser, gateway, **options))
        return opened[-1]

    yield new
    for each in opened:
        each.close()
