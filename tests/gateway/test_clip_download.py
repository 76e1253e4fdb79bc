"""The clip of a message: its type by its bytes, parts of it, its owner alone, and its end."""

import pytest

from gateway.clip_download import media_type
from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.test_messages import send, upload
from tests.waiting import until

WEBM = b"\x1aE\xdf\xa3" + bytes(range(256)) * 3000


@pytest.fixture(scope="module")
def message(gateway: GatewayProcess) -> str:
    """Speech is switched off here: the clip stays, and its message fails."""
    client = gateway.client(gateway.token("singer", "singer"))
    return str(upload(client, "song", WEBM).json()["message"])


def test_a_clip_is_played_again_whole_and_in_parts(gateway: GatewayProcess, message: str) -> None:
    client = gateway.client(gateway.token("singer-2", "singer", "watch"))
    path = f"/api/messages/{message}/clip"
    whole = client.get(path)
    assert (whole.status_code, whole.content) == (200, WEBM)
    assert whole.headers["Content-Type"] == "audio/webm"
    assert whole.headers["Accept-Ranges"] == "bytes"
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    assert whole.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    size = len(WEBM)
    parts = {
        "bytes=0-": (0, size),
        "bytes=10-19": (10, 20),
        "bytes=700000-": (700_000, size),
        "bytes=-5": (size - 5, size),
        f"bytes={size - 1}-{size + 100}": (size - 1, size),
    }
    for wanted, (first, behind) in parts.items():
        part = client.get(path, headers={"Range": wanted})
        assert (part.status_code, part.content) == (206, WEBM[first:behind]), wanted
        assert part.headers["Content-Range"] == f"bytes {first}-{behind - 1}/{size}"
    for ignored in ("bytes=0-1,5-6", "lines=1-2", "bytes=-", "bytes=x-y"):
        assert client.get(path, headers={"Range": ignored}).status_code == 200
    for beyond in (f"bytes={size}-", "bytes=5-4", "bytes=-0"):
        refused = client.get(path, headers={"Range": beyond})
        assert error_of(refused) == (416, "invalid")
        assert refused.headers["Content-Range"] == f"bytes */{size}"


def test_f10_a_strangers_clip_does_not_exist(gateway: GatewayProcess, message: str) -> None:
    stranger = gateway.client(gateway.token("listener", "listener"))
    assert error_of(stranger.get(f"/api/messages/{message}/clip")) == (404, "unknown")
    assert gateway.client().get(f"/api/messages/{message}/clip").status_code == 200


def test_a_clip_that_is_not_there_is_404_with_a_sentence(gateway: GatewayProcess) -> None:
    client = gateway.client()
    text = send(client, "typed", "no clip here")["message"]
    missing = client.get(f"/api/messages/{text}/clip")
    assert error_of(missing) == (404, "unknown")
    assert "has no clip" in missing.text
    assert error_of(client.get("/api/messages/m_none/clip")) == (404, "unknown")
    before = set(gateway.places.clips.iterdir())
    sung = upload(client, "gone", b"OggS and more").json()["message"]
    (clip,) = set(gateway.places.clips.iterdir()) - before
    assert client.get(f"/api/messages/{sung}/clip").headers["Content-Type"] == "audio/ogg"
    # A link that took the clip's place leads nowhere.
    clip.unlink()
    clip.symlink_to(gateway.places.token)
    removed = client.get(f"/api/messages/{sung}/clip")
    assert error_of(removed) == (404, "unknown")
    assert "has been removed" in removed.text
    clip.unlink()
    assert until(lambda: client.get(f"/api/messages/{sung}/clip").status_code == 404)


@pytest.mark.parametrize(
    ("head", "type"),
    [
        (b"\x1aE\xdf\xa3", "audio/webm"),
        (b"\x00\x00\x00\x1cftypM4A ", "audio/mp4"),
        (b"OggS\x00", "audio/ogg"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"fLaC\x00", "audio/flac"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "application/octet-stream"),
        (b"RIFF\x24\x00\x00\x00AVI LIST", "application/octet-stream"),
        (b"<html><script>", "application/octet-stream"),
        (b"\xff", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_type_is_what_the_bytes_say(head: bytes, type: str) -> None:
    assert media_type(head) == type


def test_what_is_no_audio_is_only_saved(gateway: GatewayProcess) -> None:
    client = gateway.client()
    page = upload(client, "page", b"<html><script>alert(1)</script>").json()["message"]
    answer = client.get(f"/api/messages/{page}/clip")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
