"""Open WebUI in a browser: a chat is one session, an edit or a regeneration a branch of it, and no more."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.agents_real.peers import peer
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import turns
from tests.house_rules import ROOT
from tests.service import Service
from tests.waiting import until

_START_SECONDS = 240
_PATIENCE_MS = 120_000
# As an administrator copies it from the document.
_HEADERS = next(
    line.strip()
    for line in (ROOT / "docs" / "openai.md").read_text().splitlines()
    if line.strip().startswith('{"X-Session"')
)


@pytest.fixture(scope="module")
def address(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running Open WebUI without a login, whose one connection is the gateway."""
    program, folder = peer("open-webui").program, tmp_path_factory.mktemp("open-webui")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATA_DIR": str(folder),
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "none",
        "OPENAI_API_BASE_URLS": f"{gateway.address}/v1",
        "OPENAI_API_KEYS": gateway.first_secret,
        "OPENAI_API_CONFIGS": json.dumps({"0": {"enable": True, "headers": json.loads(_HEADERS)}}),
        "ENABLE_PERSISTENT_CONFIG": "false",
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_VERSION_UPDATE_CHECK": "false",
        "RAG_EMBEDDING_ENGINE": "openai",
        "OFFLINE_MODE": "true",
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "true",
    }
    command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        until(lambda: _answers(process, port, folder), _START_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _answers(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text()[-4000:]
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def page(address: str) -> Iterator[Page]:
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        # It runs as root in containers, where Chromium's own sandbox cannot.
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(_PATIENCE_MS)
        page.goto(address)
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        yield page
        browser.close()


def send(page: Page, text: str) -> None:
    page.locator("#chat-input").click()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def answers(page: Page) -> Locator:
    return page.get_by_role("log").get_by_text("You said:")


def test_f15_a_chat_is_one_session_with_its_branches_and_no_ghost(page: Page, service: Service) -> None:
    send(page, "hello my friend")
    expect(answers(page)).to_have_text(["You said: hello my friend"])
    # Its title is made by a task, beside the conversation.
    expect(page.get_by_role("heading", name="hello my friend", level=1)).to_be_visible()
    (root,) = [row["session"] for row in service.show("sessions")]

    send(page, "[[slow count=1000 interval=0.1]]")
    page.get_by_role("log").get_by_text("word5").wait_for()
    page.get_by_role("button", name="Stop").click()
    assert service.listen(root).ending(f"{root}/2").type == "turn.interrupted"

    send(page, "and now")
    expect(answers(page).last).to_have_text("You said: and now")
    assert [state for _, _, state in turns(service, root)] == ["done", "interrupted", "done"]
    assert [row["session"] for row in service.show("sessions")] == [root]

    regenerate(page)
    (branch,) = until(lambda: branches(service, root))
    until(lambda: turns(service, branch)[-1][2] == "done")
    assert [users for _, users, _ in turns(service, branch)] == [
        ["hello my friend"],
        ["[[slow count=1000 interval=0.1]]"],
        ["and now"],
    ]

    edit_first(page, "good evening")
    expect(answers(page)).to_have_text(["You said: good evening"])
    (other,) = until(lambda: [name for name in branches(service, root) if name != branch])
    assert turns(service, other) == [(f"{other}/1", ["good evening"], "done")]
    send(page, "more")
    expect(answers(page).last).to_have_text("You said: more")
    assert [users for _, users, _ in turns(service, other)] == [["good evening"], ["more"]]

    assert {row["session"] for row in service.show("sessions")} == {root, branch, other}
    assert len(turns(service, root)) == 3


def branches(service: Service, root: str) -> list[str]:
    return [row["session"] for row in service.show("sessions", prefix=f"{root}~")]


def regenerate(page: Page) -> None:
    page.get_by_role("button", name="Regenerate").last.click()
    again = page.get_by_text("Try Again")
    if again.count():
        again.click()


def edit_first(page: Page, text: str) -> None:
    first = page.get_by_role("log").get_by_role("listitem").first
    first.hover()
    first.get_by_role("button", name="Edit").click()
    area = first.get_by_role("textbox")
    area.fill(text)
    first.get_by_role("button", name="Send").click()
