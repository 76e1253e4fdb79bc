"""Microphones and sound files for the browser: a spoken clip, a silent device, and drops."""

from pathlib import Path

from tests.console.console_page import ConsolePage
from tests.stt_service.sounds import file_of, samples_of

SPOKEN = "ask_not"
# The name of the button.
MICROPHONE = "Record a message: hold, or click twice"
# Pretends a microphone of which nothing is heard; what records it is real.
SILENT = """navigator.mediaDevices.getUserMedia = async () =>
  (window.microphone = new AudioContext().createMediaStreamDestination().stream)"""


def flags(folder: Path) -> list[str]:
    """Of a browser whose microphone says the clip once; pages need the permission."""
    sound = folder / "spoken.wav"
    sound.write_bytes(file_of(samples_of(SPOKEN), "wav", rate=48_000))
    return ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={sound}%noloop"]


def dropping(page: ConsolePage, name: str, kind: str, content: bytes, bytes_at_least: int = 0) -> None:
    """Drops a file on the conversation; it is filled up with zeroes in the browser."""
    made = page.page.evaluate_handle(
        """([name, type, text, atLeast]) => {
          const transfer = new DataTransfer();
          const bytes = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
          const rest = new Uint8Array(Math.max(0, atLeast - bytes.length));
          transfer.items.add(new File([bytes, rest], name, { type }));
          return transfer;
        }""",
        [name, kind, content.decode("latin-1"), bytes_at_least],
    )
    page.page.locator("main.talk").dispatch_event("drop", {"dataTransfer": made})
