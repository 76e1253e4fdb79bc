"""A sound file sent from the chat, heard by the real speech model: its words are shown and answered."""

from pathlib import Path

from tests.acceptance.test_voice import START_SECONDS, hearing, stt
from tests.fake_model import FakeModel
from tests.hermesctl.hand import ROOT
from tests.hermesctl.terminal import hermesctl_in
from tests.waiting import until


def test_a_spoken_message_shows_what_was_understood_and_is_answered(tmp_path: Path, model: FakeModel) -> None:
    with hearing(tmp_path, model, "echo = true") as service:
        until(lambda: stt(service)["state"] == "ready", START_SECONDS)
        with hermesctl_in(service.home, "chat", "demo") as terminal:
            terminal.shows("say something")
            terminal.say(f"/voice {ROOT / 'tests' / 'speech' / 'ask_not.ogg'}")
            terminal.shows("❯ 🎙 And so", "what your country can do for you", "You said:", "tokens")
            (folder := tmp_path / "picture.ogg").write_bytes(b"\x89PNG no sound")
            terminal.say(f"/voice {folder}")
            terminal.shows("not understood:", "/retry listens again")
