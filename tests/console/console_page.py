"""The console in a real browser as a test holds it: what a person does, and what must never happen."""

import json
import shlex
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.gateway.gateway_process import GatewayProcess

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# Longer than anything takes on a busy machine.
TIMEOUT_MS = 60_000
SPIN = {"name": "shell", "arguments": {"command": "sleep 1000"}}


def calling(*calls: dict[str, Any], text: str = "Done.") -> str:
    """A message that has the fake model call tools, then say the text."""
    rounds = json.dumps([list(calls)]).replace("]]", "] ]")
    return f"[[tools calls={shlex.quote(rounds)} text={shlex.quote(text)}]] go"


def saying(text: str) -> str:
    return f"[[normal text={shlex.quote(text)}]] go"


def slow(count: int = 10_000, interval: float = 0.05) -> str:
    return f"[[slow count={count} interval={interval}]] go"


class ConsolePage:
    """One tab. `faults`: errors of scripts and reports of the policy; `strangers`: requests elsewhere."""

    def __init__(self, browser: Browser, gateway: GatewayProcess, **options: Any) -> None:
        self.gateway = gateway
        self.context: BrowserContext = browser.new_context(
            **({"viewport": {"width": 1200, "height": 800}} | options)
        )
        self.context.set_default_timeout(TIMEOUT_MS)
        self.faults: list[str] = []
        self.strangers: list[str] = []
        self.page = self.tab()

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self._take(message.type, message.text))
        page.on("request", lambda request: self._look(request.url))
        page.on("dialog", lambda dialog: self.faults.append(f"a dialog: {dialog.message}"))
        return page

    def _take(self, kind: str, text: str) -> None:
        # The browser itself reports answers like 404 and lost connections as errors.
        ordinary = ("Failed to load resource", "WebSocket connection to")
        if kind == "error" and not text.startswith(ordinary):
            self.faults.append(text)

    def _look(self, url: str) -> None:
        if not url.startswith((self.gateway.address, "data:", "blob:")):
            self.strangers.append(url)

    def open(self, path: str = "/") -> "ConsolePage":
        self.page.goto(self.gateway.address + path)
        return self

    def login(self, secret: str | None = None, session: str = "main") -> "ConsolePage":
        """Opens a session, logged in by a token."""
        self.open(f"/#/talk/{session}")
        self.page.get_by_label("Pairing code or token").fill(secret or self.gateway.first_secret)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.box).to_be_visible()
        return self

    @property
    def box(self) -> Locator:
        return self.page.locator(".composer textarea")

    def say(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def turns(self, state: str = "") -> Locator:
        return self.page.locator(f".turn.{state}" if state else ".turn")

    @property
    def waiting(self) -> Locator:
        return self.page.get_by_label("Waiting messages").locator("li")

    def choose_mode(self, mode: str) -> None:
        self.page.get_by_label("What a message does to a running turn").select_option(mode)

    def toast(self) -> Locator:
        return self.page.locator(".toast")

    def close(self) -> None:
        """No test may leave a fault behind that it does not name."""
        self.context.close()
        assert self.faults == []
        assert self.strangers == []
