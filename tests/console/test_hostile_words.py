"""Words of strangers: no script runs, no request leaves the origin, and the policy has nothing to report."""

import shlex

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenConsole
from tests.console.console_page import calling, saying
from tests.gateway.gateway_process import GatewayProcess

PAGE = "<!doctype html><script>window.pwned=1</script><img src=x onerror=window.pwned=1><h1>Welcome</h1>"
MARKDOWN = """<img src=x onerror="window.pwned=1"> <script>window.pwned=1</script>

[click me](javascript:window.pwned=1) [and me](data:text/html,<script>window.pwned=1</script>)
[or me](  JaVaScRiPt:window.pwned=1) [gateway](/api/logout)

![picture](https://evil.example/track.png) <https://evil.example/auto> https://evil.example/raw

[honest](https://example.org/page) <svg onload=window.pwned=1> <iframe src="https://evil.example"></iframe>

| a | b |
| --- | --- |
| <b onmouseover=window.pwned=1>x</b> | [y](vbscript:x) |

```html
<script>window.pwned=1</script>
```

exe.\u202egpj\u202c and pass\u200bword \u061cLRM
"""


def test_markup_in_an_answer_stays_text_and_odd_addresses_are_no_links(console: OpenConsole) -> None:
    page = console().login(session="hostile")
    page.say(saying(MARKDOWN))
    answer = page.turns("done").locator(".words")
    expect(answer).to_contain_text('<img src=x onerror="window.pwned=1">')
    expect(
        answer.locator("script, img, iframe, svg, object, embed, style, [onerror], [onload]")
    ).to_have_count(0)
    links = answer.locator("a[href]")
    addresses = [links.nth(n).get_attribute("href") for n in range(links.count())]
    assert set(addresses) <= {
        "https://evil.example/track.png",
        "https://evil.example/auto",
        "https://evil.example/raw",
        "https://example.org/page",
    }
    assert "https://example.org/page" in addresses
    for number in range(links.count()):
        assert links.nth(number).get_attribute("rel") == "noopener noreferrer nofollow"
    text = answer.inner_text()
    assert not {"\u202e", "\u202c", "\u200b"} & set(text)
    assert "exe.�gpj�" in text
    assert page.page.evaluate("window.pwned") is None


def test_a_tool_result_and_a_message_that_are_pages_stay_text(console: OpenConsole) -> None:
    page = console().login(session="pages")
    page.say(calling({"name": "shell", "arguments": {"command": f"echo {shlex.quote(PAGE)}"}}))
    page.turns("done").get_by_role("button", name="shell").click()
    expect(page.page.locator(".tool-result pre")).to_contain_text("<h1>Welcome</h1>")
    page.say(PAGE)
    expect(page.turns("done")).to_have_count(2)
    expect(page.turns("done").last.locator(".said")).to_have_text(PAGE)
    expect(page.page.locator("#content h1")).to_have_text("pages")
    assert page.page.evaluate("window.pwned") is None


@pytest.mark.parametrize(
    "words",
    ["x" * 900_000, "`" * 200_000, "*" * 200_000, "> " * 3_000 + "deep", "[a](" * 50_000],
    ids=["line", "backticks", "stars", "quotes", "links"],
)
def test_words_that_are_hard_to_draw_leave_the_page_at_hand(
    console: OpenConsole, gateway: GatewayProcess, words: str
) -> None:
    session = f"hard-{words[:2].encode().hex()}"
    page = console().login(session=session)
    # The model echoes it.
    answer = gateway.client().post(f"/api/sessions/{session}/messages", json={"text": words})
    assert answer.status_code == 202
    expect(page.turns("done").locator(".words")).to_contain_text("You said")
    page.say("still there?")
    expect(page.turns("done").last).to_contain_text("You said: still there?")


def test_names_of_sessions_and_tools_cannot_break_out(console: OpenConsole) -> None:
    name = "<img src=x onerror=window.pwned=1>"
    page = console().login()
    search = page.page.get_by_label("Search sessions, or name a new one")
    search.fill(name)
    search.press("Enter")
    expect(page.page.locator("h1")).to_have_text(name)
    page.say("hello")
    expect(page.turns("done")).to_contain_text("You said: hello")
    expect(page.page.get_by_role("navigation", name="Sessions").get_by_text(name)).to_be_visible()
    assert page.page.evaluate("window.pwned") is None


def test_right_to_left_words_have_their_own_direction(console: OpenConsole) -> None:
    page = console().login(session="rtl")
    page.say(saying("שלום **עולם**\n\nplain words"))
    paragraphs = page.turns("done").locator(".words p")
    expect(paragraphs.first).to_have_css("direction", "rtl")
    expect(paragraphs.last).to_have_css("direction", "ltr")
