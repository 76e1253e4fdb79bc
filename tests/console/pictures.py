"""Makes the pictures of docs/console.md: `python -m tests.console.pictures [FOLDER]`."""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.console.console_page import ARGUMENTS, CHROMIUM, ConsolePage
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.house_rules import ROOT
from tests.service import Service, settings_for

REVIEW = """The retry loop has **no upper bound**. When the server answers 503, it asks again, and forever:

```python
while True:
    answer = fetch(url)
    if answer.status != 503:
        return answer
```

Two changes are enough:

1. wait between attempts, twice as long each time
2. give up after five of them, and say so

| attempt | wait |
| --- | --- |
| 1 | 0.5 s |
| 2 | 1 s |
| 3 | 2 s |
"""
STORY = (
    "The lighthouse keeper counted the ships every evening, and wrote the number into a book. "
    "On the day the number was zero, he lit the lamp twice as bright. "
)
SPIN = [[{"name": "shell", "arguments": {"command": "python3 -c 'while True: pass'"}}]]
LOOK = [
    [{"name": "read", "arguments": {"path": "fetch.py"}}],
    [{"name": "shell", "arguments": {"command": "pytest -q tests/test_fetch.py"}}],
]
DEPLOY = [[{"name": "shell", "arguments": {"command": "deploy --to production --version 1.4.0"}}]]


def scene(page: ConsolePage, model: FakeModel, phone: bool = False) -> None:
    """A morning's work: a review, a runaway that was stopped, an answer that streams, what waits."""

    def say(words: str, mode: str, **options: Any) -> None:
        model.set_mode(mode, **options)
        page.box.fill(words)
        page.page.get_by_role("button", name="Send", exact=True).click()

    say("Why do our tests hang when the server is down?", "tools", calls=LOOK, text=REVIEW)
    expect(page.turns("done")).to_have_count(1)
    say("Check the sums in all reports", "tools", calls=SPIN)
    expect(page.page.locator(".tool.running")).to_be_visible()
    page.page.get_by_role("button", name="Stop what runs (Esc)").click()
    expect(page.turns("interrupted")).to_have_count(1)
    page.choose_mode("queue")
    say("Then tell me a story about a lighthouse", "slow", interval=0.08, text=STORY * 40)
    expect(page.turns("running").locator(".words")).to_contain_text("he lit the lamp")
    if not phone:
        say("And give it a happy end", "slow", interval=0.08, text=STORY * 40)
        say("Then translate it into Greek", "slow", interval=0.08, text=STORY * 40)
        expect(page.waiting).to_have_count(2)


def take(driver: Playwright, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home, FakeModel() as model:
        Path(home, "home").mkdir()
        ask = {"agents.default": 'ask = ["shell(deploy*)"]'}
        settings = settings_for(model, workers="count = 3", **ask)
        with Service(Path(home, "home"), settings) as service, GatewayProcess(service.places) as gateway:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
            _take_all(driver, browser, gateway, model, folder)
            browser.close()


def _take_all(
    driver: Playwright, browser: Browser, gateway: GatewayProcess, model: FakeModel, folder: Path
) -> None:
    desk = ConsolePage(browser, gateway, viewport={"width": 1180, "height": 860}, color_scheme="light")
    for name in ("release-notes", "holiday-plans", "garden", "deploy"):
        model.set_mode("normal", text="Noted.")
        desk.login(session=name) if name == "release-notes" else desk.open(f"/#/talk/{name}")
        desk.say("Remember this for later")
        expect(desk.turns("done")).to_have_count(1)
    model.set_mode("tools", calls=DEPLOY)
    desk.say("Ship version 1.4.0")
    expect(desk.page.get_by_role("button", name="Approve")).to_be_visible()
    _shot(desk, folder / "console-approval.png")
    desk.open("/#/talk/review")
    scene(desk, model)
    _shot(desk, folder / "console-talk.png")
    desk.open("/#/watch")
    expect(desk.page.locator(".seat.busy")).to_be_visible()
    expect(desk.page.locator(".spark polyline").first).to_have_attribute(
        "points", re.compile(r"(\S+ ){8}"), timeout=60_000
    )
    _shot(desk, folder / "console-watch.png", dark=True)
    desk.page.get_by_role("button", name="review/2").click()
    expect(desk.page.locator(".story")).to_be_visible()
    _shot(desk, folder / "console-why.png")
    desk.page.keyboard.press("Escape")
    small = {
        key: value for key, value in driver.devices["iPhone 15"].items() if key != "default_browser_type"
    }
    phone = ConsolePage(browser, gateway, **{**small, "device_scale_factor": 2}, color_scheme="dark")
    phone.login(session="phone")
    scene(phone, model, phone=True)
    _shot(phone, folder / "console-phone.png", dark=True)
    desk.context.close()
    phone.context.close()


def _shot(page: ConsolePage, path: Path, dark: bool = False) -> None:
    page.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
    page.page.mouse.move(0, 0)
    page.page.screenshot(path=path)
    print(f"{path} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    wanted = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    with sync_playwright() as playwright:
        take(playwright, wanted)
