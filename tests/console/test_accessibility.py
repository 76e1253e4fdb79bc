"""Every screen in both themes: axe-core finds no violation. And the keyboard reaches everything."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import OpenConsole
from tests.console.console_page import SPIN, calling, saying
from tests.house_rules import ROOT

AXE = ROOT / "vendor" / "node_modules" / "axe-core" / "axe.min.js"
QUESTION = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}
ANSWER = """### Title

Some **bold** [link](https://example.org)

# Another

| a | b |
|---|---|
| 1 | 2 |

```sh
ls
```
> quoted"""


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci --prefix vendor")
    return AXE.read_text()


def violations(page: Page, axe: str) -> list[Any]:
    """In both themes; what moves is finished first."""
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.evaluate(axe)
        result = page.evaluate("axe.run({ resultTypes: ['violations'] })")
        found += [
            (theme, each["id"], [node["html"][:200] for node in each["nodes"]])
            for each in result["violations"]
        ]
    return found


def test_the_login_has_no_violation(console: OpenConsole, axe: str) -> None:
    page = console().open("/#code=AAAA-AAAA")
    expect(page.page.get_by_role("alert")).not_to_be_empty()
    assert violations(page.page, axe) == []


def test_a_conversation_has_no_violation(console: OpenConsole, axe: str) -> None:
    page = console().login(session="axe")
    page.say(saying(ANSWER))
    expect(page.turns("done")).to_have_count(1)
    page.say(calling({"name": "shell", "arguments": {"command": "echo words; exit 1"}}))
    expect(page.turns("done")).to_have_count(2)
    page.page.locator(".tool-line").click()
    expect(page.page.locator(".tool-result")).to_be_visible()
    page.say("[[400]] fail")
    expect(page.turns("failed")).to_have_count(1)
    page.say(calling(SPIN))
    expect(page.page.locator(".tool.running")).to_be_visible()
    page.choose_mode("queue")
    page.say("waits")
    expect(page.waiting).to_have_count(1)
    assert violations(page.page, axe) == []
    page.box.press("Escape")
    expect(page.turns("interrupted")).to_have_count(1)
    page.turns("interrupted").get_by_role("button", name="Why").last.click()
    expect(page.page.locator(".story")).to_be_visible()
    assert violations(page.page, axe) == []
    page.page.keyboard.press("Escape")
    page.page.get_by_role("button", name="Drop all").or_(
        page.waiting.get_by_role("button").first
    ).first.click()
    page.say(calling(QUESTION))
    expect(page.page.get_by_role("button", name="blue")).to_be_visible()
    page.page.get_by_role("button", name="Keys and help (?)").click()
    expect(page.page.get_by_role("dialog")).to_be_visible()
    assert violations(page.page, axe) == []


def test_watch_has_no_violation_also_on_a_phone(console: OpenConsole, axe: str) -> None:
    page = console().login(session="axe-seats")
    page.say(calling(QUESTION))
    page.page.get_by_role("link", name="Watch").click()
    expect(page.page.get_by_role("region", name="Questions")).to_be_visible()
    expect(page.page.locator(".seat").first).to_be_visible()
    assert violations(page.page, axe) == []
    page.page.set_viewport_size({"width": 360, "height": 640})
    assert violations(page.page, axe) == []
    page.page.get_by_role("button", name="Sessions").click()
    assert violations(page.page, axe) == []


def test_the_keyboard_alone_is_enough(console: OpenConsole) -> None:
    page = console().login(session="keys")
    keyboard = page.page.keyboard
    expect(page.box).to_be_focused()
    keyboard.type("one")
    keyboard.press("Shift+Enter")
    keyboard.type("two")
    keyboard.press("Enter")
    expect(page.turns("done").locator(".said")).to_have_text("one\ntwo")
    keyboard.type(calling(SPIN))
    keyboard.press("Enter")
    expect(page.page.locator(".tool.running")).to_be_visible()
    keyboard.press("Escape")
    expect(page.turns("interrupted")).to_have_count(1)
    keyboard.press("Tab")
    keyboard.press("Shift+Tab")
    expect(page.box).to_be_focused()
    keyboard.press("Control+k")
    expect(page.page.get_by_label("Search sessions, or name a new one")).to_be_focused()
    keyboard.type("other")
    keyboard.press("Enter")
    expect(page.page.get_by_role("heading", name="other", exact=True)).to_be_visible()
    expect(page.box).to_be_focused()
    keyboard.press("Alt+ArrowDown")
    page.page.locator(".scroll").focus()
    keyboard.press("?")
    expect(page.page.get_by_role("dialog", name="Keys")).to_be_visible()
    keyboard.press("Escape")
    expect(page.page.get_by_role("dialog")).to_have_count(0)
    keyboard.press("/")
    expect(page.box).to_be_focused()
