"""`hermesctl send --audio` and `retry MESSAGE` against a scripted supervisor: what is stored and shown."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl import clip_upload
from hermesctl.clip_upload import store
from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from ipc.messages import (
    Accepted,
    Answer,
    Noted,
    Refused,
    Request,
    Retry,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
)
from ipc.places import find_places
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.test_send import Items, delta, done

ACCEPTED = Accepted("m_1", 1)


def playing(make: Callable[[Story], Items], accepted: Answer = ACCEPTED) -> Callable[[Peer, Request], Items]:
    """A supervisor that takes a clip and then plays a feed."""

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Subscribe):
            return [Subscribed(1)]
        if isinstance(request, Show):
            return [Table(({"kind": "message", "id": request.id, "session": "demo", "state": "refused"},))]
        if isinstance(request, Submit | Retry):
            peer.say(Subscribe, *make(Story(seq=1)))
            return [accepted]
        return []

    return reply


def understood(story: Story, **echo: bool) -> Items:
    return [
        story.event("message.accepted", message="m_1", kind="voice", busy="interrupt", text=""),
        Noted("m_1", 0, "heard 30 of 60 s"),
        Noted("m_other", 0, "of somebody else"),
        story.event("transcript.ready", message="m_1", text="capital?", **echo),
        story.event("turn.opened", turn="demo/1", messages=["m_1"]),
        delta(0, "Paris."),
        done(story, "Paris."),
    ]


def not_understood(story: Story) -> Items:
    reason, hint = "it is a picture", "send sound"
    return [story.event("transcript.failed", message="m_1", reason=reason, hint=hint)]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "note.ogg"
    path.write_bytes(b"sound")
    return path


def stored(home: Path) -> list[bytes]:
    return [path.read_bytes() for path in (home / "clips").iterdir()]


def test_a_clip_is_stored_before_it_is_spoken_of_and_its_words_are_shown(tmp_path: Path, sound: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    seen: list[bytes] = []

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Submit):
            assert request.text == ""
            seen.append((peer.places.clips / request.clip).read_bytes())
        return playing(understood)(peer, request)

    with opened(home, reply):
        result = hermesctl(home, "send", "demo", "--audio", str(sound))
    assert (result.code, result.out) == (0, "Paris.\n")
    assert result.err == "· heard 30 of 60 s\n🎙️ “capital?”\n"
    assert seen == stored(home) == [b"sound"]


def test_without_echo_the_words_are_not_shown(tmp_path: Path, sound: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with opened(home, playing(lambda story: understood(story, echo=False))):
        result = hermesctl(home, "send", "demo", "--audio", str(sound))
    assert "capital" not in result.err


def test_standard_input_can_be_the_clip_and_programs_see_every_event(tmp_path: Path) -> None:
    with opened(tmp_path, playing(understood)):
        result = hermesctl(tmp_path, "send", "demo", "--audio", "-", "--json", stdin="sound")
    types = [json.loads(line)["type"] for line in result.out.splitlines()]
    assert types == ["message.accepted", "note", "transcript.ready", "turn.opened", "delta", "turn.done"]
    assert stored(tmp_path) == [b"sound"]


def test_a_clip_without_words_tells_why_and_is_kept(tmp_path: Path, sound: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with opened(home, playing(not_understood)):
        result = hermesctl(home, "send", "demo", "--audio", str(sound))
    assert result.code == 4
    assert "m_1 will not be answered: it is a picture" in result.err
    assert "hint: send sound" in result.err
    assert stored(home) == [b"sound"]


@pytest.mark.parametrize("answer", [Refused("no room", "wait"), Accepted("m_1", 1, again=True)])
def test_a_clip_that_became_no_message_is_taken_back(tmp_path: Path, sound: Path, answer: Answer) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with opened(home, playing(understood, answer)):
        hermesctl(home, "send", "demo", "--audio", str(sound), "--no-wait")
    assert stored(home) == []


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("words", "--audio", "x"), 2, "say TEXT, or name a sound file"),
        ((), 2, "say TEXT, or name a sound file"),
        (("--audio", "nowhere.ogg"), 2, "nowhere.ogg does not exist"),
        (("--audio", "/dev"), 2, "/dev is not a file"),
        (("--audio", "-"), 5, "the clip is empty"),
    ],
)
def test_what_cannot_be_sent_is_named(tmp_path: Path, line: tuple[str, ...], code: int, said: str) -> None:
    with opened(tmp_path, playing(understood)) as peer:
        result = hermesctl(tmp_path, "send", "demo", *line)
        assert peer.requests(Submit) == []
    assert result.code == code
    assert said in result.err
    assert not (tmp_path / "clips").exists() or stored(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can speak to a service of another user")
def test_a_clip_of_root_belongs_to_the_user_of_the_service(tmp_path: Path) -> None:
    places = find_places(str(tmp_path))
    places.clips.mkdir(mode=0o700)
    os.chown(places.clips, 12345, 12346)
    (tmp_path / "sound").write_bytes(b"x")
    owner = (places.clips / store(places, str(tmp_path / "sound"))).stat()
    assert (owner.st_uid, owner.st_gid, owner.st_mode & 0o777) == (12345, 12346, 0o600)
    assert places.clips.stat().st_uid == 12345


def test_a_message_is_retried_in_its_session(tmp_path: Path) -> None:
    with opened(tmp_path, playing(understood)) as peer:
        result = hermesctl(tmp_path, "retry", "m_old")
        assert peer.requests(Subscribe)[0].session == "demo"
        assert peer.requests(Retry)[0].turn == "m_old"
    assert (result.code, result.out) == (0, "Paris.\n")


@pytest.mark.parametrize(
    ("code", "is_kept"), [(Exit.REFUSED, False), (Exit.NOT_RUNNING, True), (Exit.TURN_FAILED, True)]
)
def test_a_clip_whose_message_may_have_been_accepted_is_kept(
    tmp_path: Path, code: Exit, is_kept: bool
) -> None:
    places = find_places(str(tmp_path))
    (tmp_path / "sound").write_bytes(b"sound")
    name = clip_upload.store(places, str(tmp_path / "sound"))
    with pytest.raises(CommandError), clip_upload.discarded_if_refused(places, name):
        raise CommandError("no answer", "look", code)
    assert (places.clips / name).exists() == is_kept
