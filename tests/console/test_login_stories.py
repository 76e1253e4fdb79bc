"""Who gets in, and what happens to one who is put out: by code, by token, revoked while the page is open."""

import re
from urllib.parse import urlparse

from playwright.sync_api import expect

from gateway.tokens import TokenStore
from tests.console.conftest import OpenConsole
from tests.console.console_page import slow
from tests.gateway.gateway_process import GatewayProcess


def code_of(gateway: GatewayProcess, rights: str = "talk,watch,operate") -> str:
    store = TokenStore(gateway.places.tokens)
    try:
        return store.make_code("paired", "", rights.split(","))
    finally:
        store.close()


def test_a_code_in_the_address_logs_in_at_once_and_leaves_no_trace(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    page = console().open(f"/#code={code_of(gateway)}")
    expect(page.page.get_by_text("main is new")).to_be_visible()
    assert urlparse(page.page.url).fragment == ""
    page.say("hello")
    expect(page.turns("done")).to_contain_text("You said: hello")
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    kept = page.page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
    assert cookie["value"] not in kept
    assert cookie["value"] not in page.page.content()
    page.page.reload()
    expect(page.turns("done")).to_contain_text("You said: hello")


def test_a_wrong_code_is_a_sentence_with_a_remedy_and_a_right_one_follows(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    page = console().open("/#code=AAAA-AAAA")
    alert = page.page.get_by_role("alert")
    expect(alert).to_have_text(re.compile("This pairing code is not valid.*hermesctl pair"))
    page.page.get_by_label("Pairing code or token").fill(code_of(gateway).lower())
    page.page.get_by_role("button", name="Log in").click()
    expect(page.box).to_be_visible()
    page.page.get_by_role("button", name="Log out").click()
    expect(page.page.get_by_label("Pairing code or token")).to_be_visible()
    assert page.context.cookies() == []
    assert page.page.evaluate("localStorage.length") == 0


def test_a_token_revoked_while_the_page_is_open_ends_it_and_keeps_what_was_typed(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    page = console().login(gateway.token("guest"), session="revoked")
    page.say(slow())
    expect(page.turns("running").locator(".words")).to_contain_text("word2")
    page.box.fill("half a thought")
    gateway.revoke("guest")
    expect(page.page.get_by_role("alert")).to_contain_text("This browser was signed out")
    expect(page.page.get_by_text("word2")).to_have_count(0)
    page.page.get_by_label("Pairing code or token").fill(gateway.first_secret)
    page.page.get_by_role("button", name="Log in").click()
    expect(page.box).to_have_value("half a thought")
    expect(page.turns("running").locator(".words")).to_contain_text("word2")
    page.box.press("Escape")
    expect(page.turns("interrupted")).to_be_visible()


def test_a_token_that_may_only_watch_sees_all_and_is_offered_nothing_else(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    talker = console().login(session="seen")
    talker.say(slow())
    expect(talker.turns("running").locator(".words")).to_contain_text("word1")
    page = console().login(gateway.token("guard", rights="watch"), session="seen")
    expect(page.turns("running").locator(".words")).to_contain_text("word3")
    expect(page.box).to_be_disabled()
    expect(page.page.get_by_role("button", name=re.compile("Stop|Record|Edit"))).to_have_count(0)
    expect(page.page.get_by_role("link", name="Watch")).to_have_count(0)
    talker.box.press("Escape")
    expect(page.turns("interrupted").locator(".ending")).to_contain_text("cut off")
