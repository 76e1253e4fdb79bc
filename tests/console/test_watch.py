"""The service at work in the browser: seats, questions, turns by state, and what an operator does."""

import re

from playwright.sync_api import expect

from tests.console.conftest import OpenConsole
from tests.console.console_page import SPIN, ConsolePage, calling
from tests.gateway.gateway_process import GatewayProcess
from tests.service import Service
from tests.waiting import until

WRITE = {"name": "shell", "arguments": {"command": "echo approved"}}
QUESTION = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}


def watching(page: ConsolePage) -> ConsolePage:
    page.page.get_by_role("link", name="Watch").click()
    expect(page.page.get_by_role("region", name="Seats")).to_be_visible()
    return page


def test_a_seat_shows_its_signs_of_life_and_its_turn_is_stopped_from_there(
    console: OpenConsole, service: Service
) -> None:
    page = console().login(session="spins")
    page.say(calling(SPIN))
    expect(page.page.locator(".tool.running")).to_be_visible()
    watching(page)
    seat = page.page.locator(".seat.busy")
    expect(seat).to_contain_text("spins/1")
    for sign in ("process", "loop", "progress"):
        expect(seat.locator(".signs")).to_contain_text(re.compile(rf"{sign} \d+"))
    expect(page.page.get_by_label("Numbers")).to_contain_text(f"of {service.status()['seats']}")
    seat.get_by_role("button", name="Stop").click()
    expect(page.toast()).to_contain_text(re.compile(r"spins/1 interrupted: \d process\w* ended in .* none"))
    expect(page.page.locator(".seat.busy")).to_have_count(0)


def test_turns_are_listed_by_state_each_with_its_time(console: OpenConsole) -> None:
    page = console().login(session="listed")
    page.say(calling({"name": "shell", "arguments": {"command": "sleep 0.3"}}))
    expect(page.turns("done")).to_be_visible()
    watching(page)
    turns = page.page.get_by_role("region", name="Turns")
    turns.get_by_role("combobox").select_option("failed")
    expect(turns.get_by_text("none")).to_be_visible()
    turns.get_by_role("combobox").select_option("done")
    turns.get_by_role("button", name="listed/1").click()
    story = page.page.get_by_role("dialog")
    expect(story.locator(".lane", has_text="tools").locator(".span.tool")).to_have_count(1)
    expect(story.locator(".lane", has_text="words").locator(".span.words")).not_to_have_count(0)
    expect(story.get_by_text("turn listed/1 is done")).to_be_visible()


def test_a_question_of_any_session_is_answered_from_there(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    client = gateway.client()
    client.post("/api/sessions/elsewhere/messages", json={"text": calling(QUESTION, text="Painted.")})
    page = watching(console().login(session="here"))
    asked = page.page.get_by_role("region", name="Questions")
    expect(asked).to_contain_text("Which colour?")
    asked.get_by_role("button", name="red").click()
    expect(asked).to_have_count(0)
    until(lambda: client.get("/api/turns/elsewhere/1").json()["state"] == "done")


def test_an_operator_drains_and_scales(console: OpenConsole, service: Service) -> None:
    page = watching(console().login(session="operated"))
    page.page.get_by_role("button", name="Drain", exact=True).click()
    until(lambda: service.status()["draining"])
    page.page.get_by_role("button", name="Undrain").click()
    until(lambda: not service.status()["draining"])
    seats = service.status()["seats"]
    page.page.get_by_role("button", name="One seat more").click()
    until(lambda: service.status()["seats"] == seats + 1)
    expect(page.page.get_by_text(f"{seats + 1} seats")).to_be_visible()
    page.page.get_by_role("button", name="One seat less").click()
    until(lambda: service.status()["seats"] == seats)
