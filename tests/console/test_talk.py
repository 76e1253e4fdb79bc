"""Stories of a person who talks: real browser, gateway, supervisor and workers."""

import re
import shlex
from typing import cast

from playwright.sync_api import Locator, Playwright, expect

from tests.console.conftest import OpenConsole
from tests.console.console_page import SPIN, calling, saying, slow
from tests.gateway.gateway_process import GatewayProcess
from tests.service import Service
from tests.waiting import until

ANSWER = """Paris is the capital of **France**:

- it lies on the *Seine*

| city | people |
| --- | --- |
| Paris | 2 M |

```python
print("Bonjour")
```
"""
QUESTION = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}


def test_a_person_chats_and_copies_code(console: OpenConsole) -> None:
    page = console(permissions=["clipboard-read", "clipboard-write"]).login(session="chat")
    expect(page.page.get_by_text("chat is new")).to_be_visible()
    page.say(saying(ANSWER))
    answer = page.turns("done").first.locator(".words")
    expect(answer.locator("strong")).to_have_text("France")
    expect(answer.locator("li em")).to_have_text("Seine")
    expect(answer.locator("td").first).to_have_text("Paris")
    expect(answer.locator(".code-language")).to_have_text("python")
    answer.get_by_role("button", name="Copy").click()
    expect(answer.get_by_role("button", name="Copied")).to_be_visible()
    assert page.page.evaluate("navigator.clipboard.readText()").strip() == 'print("Bonjour")'
    expect(
        page.page.get_by_role("navigation", name="Sessions").get_by_text("chat", exact=True)
    ).to_be_visible()
    expect(page.page.get_by_role("status").last).to_contain_text("Answer: Paris is the capital")


def test_a_runaway_tool_is_stopped_with_esc_and_the_proof_is_shown(
    console: OpenConsole, service: Service
) -> None:
    page = console().login(session="runaway")
    page.say(calling(SPIN))
    expect(page.page.locator(".tool.running")).to_contain_text("sleep 1000")
    page.box.press("Escape")
    ended = page.turns("interrupted").locator(".ending")
    expect(ended).to_contain_text(
        re.compile(r"cut off \d\d:\d\d · [12] processe?s? ended in [\d.]+ ms, none")
    )
    expect(page.page.locator(".tool.cut")).to_contain_text("stopped")
    (turn,) = [row for row in service.show("turns") if row["turn"] == "runaway/1"]
    assert turn["state"] == "interrupted"
    page.turns("interrupted").get_by_role("button", name="Why").last.click()
    story = page.page.get_by_role("dialog")
    expect(story).to_contain_text("was interrupted by")
    expect(story.locator(".span.waiting, .span.attempt")).not_to_have_count(0)
    page.page.keyboard.press("Escape")
    expect(story).to_have_count(0)
    page.turns("interrupted").get_by_role("button", name="Retry").click()
    expect(page.page.locator(".tool.running")).to_be_visible()
    page.page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.turns("interrupted")).to_have_count(2)


def test_five_messages_while_busy_wait_are_dropped_held_and_resumed(console: OpenConsole) -> None:
    page = console().login(session="busy")
    page.choose_mode("queue")
    page.say(slow())
    expect(page.turns("running").locator(".words")).to_contain_text("word2")
    for number in range(1, 6):
        page.say(f"number {number}")
    expect(page.waiting).to_have_count(5)
    expect(page.waiting.nth(4)).to_contain_text("number 5")
    page.waiting.nth(1).get_by_role("button", name="Take this message back").click()
    expect(page.waiting).to_have_count(4)
    expect(page.page.get_by_text("taken back: number 2")).to_be_visible()
    page.page.get_by_role("button", name="Stop what runs (Esc)").click()
    expect(page.page.get_by_text("held by the interrupt")).to_be_visible()
    page.page.get_by_role("button", name="Resume").click()
    expect(page.turns("done")).to_have_count(4)
    expect(page.turns("done").last).to_contain_text("You said: number 5")
    expect(page.waiting).to_have_count(0)


def test_the_busy_mode_is_a_visible_choice_that_messages_follow(console: OpenConsole) -> None:
    page = console().login(session="mode")
    page.say(slow())
    expect(page.turns("running").locator(".words")).to_contain_text("word2")
    expect(page.page.get_by_label("What a message does to a running turn")).to_contain_text(
        "default (interrupt)"
    )
    page.say("something else")
    expect(page.turns("interrupted")).to_have_count(1)
    expect(page.turns("done")).to_contain_text("You said: something else")


def test_tools_are_folded_and_show_arguments_and_results(console: OpenConsole) -> None:
    page = console().login(session="tools")
    page.say(calling({"name": "shell", "arguments": {"command": "echo one two; exit 3"}}))
    line = page.turns("done").get_by_role("button", name="shell")
    expect(line).to_contain_text("exit 3")
    expect(page.page.locator(".tool-details")).to_have_count(0)
    line.click()
    expect(page.page.locator(".tool-details dd")).to_have_text("echo one two; exit 3")
    expect(page.page.locator(".tool-result pre")).to_contain_text("one two")
    line.click()
    expect(page.page.locator(".tool-details")).to_have_count(0)


def test_a_question_is_answered_by_a_button_and_another_by_words(console: OpenConsole) -> None:
    page = console().login(session="ask")
    page.say(calling(QUESTION, text="Painted."))
    expect(page.page.get_by_role("group", name="Question")).to_contain_text("Which colour?")
    page.page.get_by_role("button", name="blue").click()
    expect(page.turns("done")).to_contain_text("Painted.")
    expect(page.page.locator(".question-answer")).to_contain_text("blue")
    page.say(calling(QUESTION, text="Done twice."))
    expect(page.page.get_by_label("Answer", exact=True)).to_be_visible()
    page.say("something like green")
    expect(page.turns("done").last).to_contain_text("Done twice.")
    expect(page.page.locator(".question-answer").last).to_contain_text("something like green")


def test_a_call_that_needs_approval_shows_what_it_does_and_is_approved_or_denied(
    console: OpenConsole,
) -> None:
    page = console().login(session="approval")
    push = {"name": "shell", "arguments": {"command": "push --all 2>&1 || echo pushed"}}
    page.say(calling(push))
    question = page.page.get_by_role("group", name="Question")
    expect(question).to_contain_text("push --all")
    question.get_by_role("button", name="Approve").click()
    expect(page.turns("done")).to_have_count(1)
    page.turns("done").get_by_role("button", name="shell").last.click()
    expect(page.page.locator(".tool-result pre")).to_contain_text("pushed")
    page.say(calling(push))
    page.turns("asking").get_by_role("button", name="Deny").click()
    expect(page.turns("done")).to_have_count(2)
    expect(page.turns("done").last.locator(".question-answer")).to_contain_text("no")


def test_other_words_for_a_message_open_a_branch_and_both_stay_reachable(console: OpenConsole) -> None:
    page = console().login(session="fork")
    page.say("first words")
    expect(page.turns("done")).to_have_count(1)
    page.say("second words")
    expect(page.turns("done")).to_have_count(2)
    page.turns("done").last.locator(".you").hover()
    page.turns("done").last.get_by_role("button", name="Edit").click()
    expect(page.box).to_have_value("second words")
    page.say("other words")
    expect(page.page.get_by_role("heading", name="fork~2", exact=True)).to_be_visible()
    expect(page.turns("done")).to_contain_text("You said: other words")
    expect(page.turns("past")).to_contain_text("You said: first words")
    expect(page.page.get_by_text("You said: second words")).to_have_count(0)
    page.page.get_by_role("link", name="branched from fork").click()
    expect(page.turns("done").last).to_contain_text("You said: second words")
    page.page.get_by_role("combobox", name="Branch").select_option("fork~2")
    expect(page.turns("done")).to_contain_text("You said: other words")


def test_two_tabs_agree_and_a_draft_survives_a_reload(console: OpenConsole) -> None:
    page = console().login(session="tabs")
    other = page.tab()
    other.goto(f"{page.gateway.address}/#/talk/tabs")
    page.say(slow(count=60, interval=0.02))
    expect(other.locator(".turn.done")).to_contain_text("word59")
    expect(page.turns("done")).to_have_text(other.locator(".turn.done").inner_text(), use_inner_text=True)
    page.box.fill("half a thought")
    page.page.reload()
    expect(page.box).to_have_value("half a thought")
    expect(page.turns("done")).to_contain_text("word59")


def test_a_session_that_is_opened_in_the_middle_of_a_turn_shows_that_turn_last(
    console: OpenConsole, gateway: GatewayProcess, service: Service
) -> None:
    listener = service.listen("middle")
    service.say("middle", "first words")
    listener.ending("middle/1")
    service.say("middle", slow())
    listener.until(lambda: "word3" in listener.words)
    page = console().login(session="middle")
    expect(page.turns()).to_have_count(2)
    expect(page.turns().last).to_contain_text("word3")
    expect(page.turns().first).to_contain_text("You said: first words")
    page.box.press("Escape")
    expect(page.turns("interrupted")).to_have_count(1)


def test_the_newest_words_stay_in_sight_until_a_person_reads_back(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    page = console(viewport={"width": 1200, "height": 500}).login(session="follow")
    lines = "\n\n".join(f"line {number}" for number in range(2_000))
    text = f"[[slow interval=0.02 text={shlex.quote(lines)}]] go"
    # Not typed: Chromium lays a text of so many lines out anew with each of them, for twenty seconds.
    gateway.client().post("/api/sessions/follow/messages", json={"text": text})
    words = page.turns("running").locator(".words")
    frame = page.page.get_by_role("region", name="Conversation")
    below = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    newest = page.page.get_by_role("button", name="newest")
    for number in (20, 40, 60):
        expect(words.locator("p").nth(number)).to_be_attached()
        expect(words.locator("p").last).to_be_in_viewport()
        expect(newest).to_have_count(0)
    frame.hover()
    page.page.mouse.wheel(0, -600)
    expect(newest).to_be_visible()
    top = until(lambda: _at_rest(frame))
    reached = words.locator("p").count()
    expect(words.locator("p").nth(reached + 20)).to_be_attached()
    assert frame.evaluate("e => e.scrollTop") == top
    newest.click()
    expect(newest).to_have_count(0)
    reached = words.locator("p").count()
    expect(words.locator("p").nth(reached + 10)).to_be_attached()
    assert frame.evaluate(below) < 100
    page.box.press("Escape")
    expect(page.turns("interrupted")).to_have_count(1)


def _at_rest(frame: Locator) -> float | None:
    """Where it was scrolled to, once that does not change from frame to frame."""
    return cast(
        "float | None",
        frame.evaluate(
            """async (e) => {
              const places = [];
              for (let n = 0; n < 5; n += 1) {
                places.push(e.scrollTop);
                await new Promise(requestAnimationFrame);
              }
              return places.every((place) => place === places[0]) ? places[0] : null;
            }"""
        ),
    )


def test_sessions_are_searched_and_say_that_they_have_news(
    console: OpenConsole, gateway: GatewayProcess
) -> None:
    page = console().login(session="news-left")
    page.say("a rare word: quokka")
    expect(page.turns("done")).to_have_count(1)
    page.open("/#/talk/news-here")
    expect(page.page.get_by_text("news-here is new")).to_be_visible()
    rows = page.page.get_by_role("navigation", name="Sessions")
    expect(rows.get_by_text("has news")).to_have_count(0)
    gateway.client().post("/api/sessions/news-left/messages", json={"text": "from elsewhere"})
    expect(rows.get_by_role("link", name="news-left")).to_contain_text("has news")
    page.page.get_by_label("Search sessions, or name a new one").fill("quokka")
    expect(rows.get_by_role("link")).to_have_count(1)
    rows.get_by_role("link").click()
    expect(page.turns("done").last).to_contain_text("You said: from elsewhere")
    expect(rows.get_by_text("has news")).to_have_count(0)


def test_what_a_hidden_page_drew_is_seen_when_it_is_shown_again(console: OpenConsole) -> None:
    page = console().login(session="hidden-left")
    hide = "is => { Object.defineProperty(document, 'hidden', { value: is, configurable: true }); }"
    shown = "document.dispatchEvent(new Event('visibilitychange'))"
    page.say("one")
    expect(page.turns("done")).to_have_count(1)
    rows = page.page.get_by_role("navigation", name="Sessions")
    for turns, is_shown_again, news in ((2, False, 1), (3, True, 0)):
        page.page.evaluate(hide, True)
        page.say("more")
        expect(page.turns("done")).to_have_count(turns)
        page.page.evaluate(hide, False)
        if is_shown_again:
            page.page.evaluate(shown)
        page.open("/#/talk/hidden-here")
        expect(page.page.get_by_text("hidden-here is new")).to_be_visible()
        expect(rows.get_by_text("has news")).to_have_count(news)
        page.open("/#/talk/hidden-left")
        expect(rows.get_by_text("has news")).to_have_count(0)


def test_on_a_phone_nothing_is_wider_than_the_screen(
    console: OpenConsole, playwright_driver: Playwright, gateway: GatewayProcess
) -> None:
    phone = {**playwright_driver.devices["iPhone 15"], "viewport": {"width": 360, "height": 640}}
    del phone["default_browser_type"]
    page = console(**phone).login(session="phone")
    page.box.fill(saying(ANSWER + "\n" + "wide" * 200))
    page.page.get_by_role("button", name="Send").tap()
    expect(page.turns("done")).to_contain_text("Paris")
    page.page.get_by_role("button", name="Sessions").tap()
    expect(page.page.get_by_role("navigation", name="Sessions")).to_be_in_viewport()
    page.page.get_by_role("link", name="Watch").tap()
    expect(page.page.get_by_role("heading", name="Turns")).to_be_visible()
    for place in ("#/watch", "#/talk/phone"):
        page.page.goto(f"{gateway.address}/{place}")
        expect(page.page.locator(".head")).to_be_visible()
        widths = "[document.documentElement, ...document.querySelectorAll('.scroll')].map(e => e.scrollWidth)"
        assert max(page.page.evaluate(widths)) <= 360
