"""Microphones that are held, refused, missing, silent or unplugged, and files that cannot be sent."""

from playwright.sync_api import expect

from tests.console.conftest import OpenConsole
from tests.console.microphone import MICROPHONE, SILENT, dropping


def test_a_held_button_records_and_escape_cancels(speaker: OpenConsole) -> None:
    page = speaker(permissions=["microphone"]).login(session="held")
    button = page.page.get_by_role("button", name=MICROPHONE)
    button.hover()
    page.page.mouse.down()
    expect(page.page.locator(".recording-clock")).to_have_text("0:01")
    page.page.keyboard.press("Escape")
    page.page.mouse.up()
    expect(button).to_be_visible()
    expect(page.page.get_by_label("Waiting messages")).to_have_count(0)


def test_a_refused_microphone_is_a_sentence_with_a_remedy(speaker: OpenConsole) -> None:
    page = speaker().login(session="refused")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.toast()).to_contain_text("The browser does not give this page the microphone")
    expect(page.toast()).to_contain_text("Allow it in the settings of the site")


def test_a_missing_microphone_is_a_sentence_with_a_remedy(console: OpenConsole) -> None:
    page = console(permissions=["microphone"]).login(session="absent")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.toast()).to_contain_text("There is no microphone here")
    expect(page.toast()).to_contain_text("Plug one in")


def test_a_recording_without_a_sound_is_not_sent_by_itself(console: OpenConsole) -> None:
    page = console()
    page.context.add_init_script(SILENT)
    page.login(session="silent")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.page.locator(".recording-clock")).to_have_text("0:01")
    page.page.get_by_role("button", name="Send the recording").click()
    expect(page.page.get_by_role("alert")).to_contain_text("Nothing was heard in this recording")
    expect(page.page.get_by_role("alert")).to_contain_text("not muted")
    page.page.get_by_role("button", name="Discard").click()
    expect(page.page.get_by_label("Waiting messages")).to_have_count(0)


def test_an_unplugged_microphone_keeps_what_was_recorded(console: OpenConsole) -> None:
    page = console()
    page.context.add_init_script(SILENT)
    page.login(session="unplugged")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.page.locator(".recording-clock")).to_have_text("0:01")
    page.page.evaluate("window.microphone.getAudioTracks()[0].dispatchEvent(new Event('ended'))")
    expect(page.page.get_by_role("alert")).to_contain_text("the microphone is gone")
    expect(page.page.get_by_role("button", name="Send it")).to_be_visible()


def test_files_that_cannot_be_sent_are_refused_before_they_are(console: OpenConsole) -> None:
    page = console().login(session="files")
    dropping(page, "notes.pdf", "application/pdf", b"%PDF")
    expect(page.toast().last).to_contain_text("notes.pdf is no sound file")
    dropping(page, "long.wav", "audio/wav", b"RIFF", bytes_at_least=26 * 1024 * 1024)
    expect(page.toast().last).to_contain_text("the limit is 25 MiB")
    expect(page.toast().last).to_contain_text("OGG/Opus")


def test_a_page_that_is_not_secure_says_how_to_get_one(console: OpenConsole) -> None:
    page = console()
    page.context.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    page.login(session="insecure")
    page.page.get_by_role("button", name=MICROPHONE).click()
    expect(page.toast()).to_contain_text("only to secure pages")
    expect(page.toast()).to_contain_text("ssh -L")
