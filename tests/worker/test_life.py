"""A real worker process on real sockets, from its first frame to its exit status."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipc.channel import Channel, connected_pair
from ipc.codec import encode
from ipc.messages import (
    Ack,
    AgentSpec,
    Assign,
    Beat,
    Failed,
    Finished,
    FromWorker,
    Hello,
    Noted,
    PastAttempt,
    PastTurn,
    Ready,
    Setup,
    Steer,
    Steered,
)
from ipc.service_messages import CellSpec, Fork
from ipc.zmtp import Sent
from supervisor.workers.link import UNSENT_BYTES_MAX
from tests.fake_model import FakeModel
from tests.worker.peer import Peer, assign, worker
from worker.lifecycle import Lifecycle
from worker.outbox import UNACKNOWLEDGED_FRAMES_MAX

Tale = Callable[[Peer], Awaitable[None]]


def play(folder: Path, tale: Tale, acknowledges: Callable[[FromWorker], bool] = lambda _: True) -> None:
    async def scene() -> None:
        async with worker(folder, acknowledges) as peer:
            await tale(peer)

    asyncio.run(scene())


def test_a_worker_says_who_it_is_and_answers_one_turn_after_the_other(
    tmp_path: Path, fake: FakeModel
) -> None:
    async def tale(peer: Peer) -> None:
        assert peer.frames[:2] == [Hello(7, 3, 41), Ready()]
        for number in (1, 2, 3):
            end = await peer.run(assign(fake.base_url, f"number {number}", turn=f"s/{number}"))
            assert isinstance(end, Finished)
            assert end.text == peer.spoken(f"s/{number}") == f"You said: number {number}"
            assert end.usage.output_tokens == 4
        assert peer.numbers == list(range(1, len(peer.numbers) + 1))

    play(tmp_path, tale)
    assert len({request.port for request in fake.requests()}) == 1


def test_the_next_turn_knows_what_was_said_before(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        history = (PastTurn(("my name is Ada",), (PastAttempt("Hello Ada."),)),)
        end = await peer.run(assign(fake.base_url, "[[recite]]", history=history))
        assert isinstance(end, Finished)
        assert end.text == (
            "I was given 4 messages: system, user, assistant, user. The first said: my name is Ada"
        )

    play(tmp_path, tale)


def test_the_loop_beats_and_the_process_echoes(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        peer.send(assign(fake.base_url, "[[silent]]"))
        await peer.until(lambda: len(peer.of(Beat)) >= 2)
        while peer.ping(b"are you there") is Sent.GONE:
            beats = len(peer.of(Beat))
            await peer.until(lambda beats=beats: len(peer.of(Beat)) > beats)  # type: ignore[misc]
        await peer.until(lambda: peer.echoes == [b"are you there"])

    play(tmp_path, tale)


def test_a_failed_turn_is_told_in_a_sentence_and_the_worker_goes_on(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        end = await peer.run(assign(fake.base_url, "[[401]] secret words"))
        assert isinstance(end, Failed)
        assert "API key" in end.error
        assert "[model] api_key_env" in end.hint
        assert isinstance(await peer.run(assign(fake.base_url, turn="s/2")), Finished)
        log = await peer.end()
        assert "secret words" not in log
        assert "attempt.opened turn=s/1 attempt=1" in log

    play(tmp_path, tale)


def test_an_unknown_kind_of_agent_is_named_with_its_setting(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        end = await peer.run(assign(fake.base_url, kind="oracle"))
        assert isinstance(end, Failed)
        assert end.error == "there is no agent of kind 'oracle'"
        assert "[agents.default] kind" in end.hint
        assert "builtin" in end.hint
        assert end.again is False

    play(tmp_path, tale)


def test_retries_are_visible_while_they_happen(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        end = await peer.run(assign(fake.base_url, "[[500 times=1]]"))
        assert isinstance(end, Finished)
        (note,) = peer.of(Noted)
        assert isinstance(note, Noted)
        assert "HTTP 500" in note.text

    play(tmp_path, tale)


def test_a_cut_answer_keeps_its_words_and_asks_for_another_attempt(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        end = await peer.run(assign(fake.base_url, "[[drop tokens=4]]"))
        assert isinstance(end, Failed)
        assert end.again is True
        assert peer.spoken("s/1") == "word0 word1 word2 word3 "

    play(tmp_path, tale)


def test_a_second_attempt_is_told_what_the_first_one_said(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        tried = (PastAttempt("word0 word1", cut="lost"),)
        end = await peer.run(assign(fake.base_url, "[[slow interval=0 count=2]]", attempt=2, tried=tried))
        assert isinstance(end, Finished)
        assert end.attempt == 2

    play(tmp_path, tale)
    (request,) = fake.requests()
    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "user"]
    assert request.messages[2]["content"] == "word0 word1"
    assert request.mode == "slow"


def test_a_second_assign_is_a_breach_of_protocol(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        peer.send(assign(fake.base_url, "[[silent]]"))
        peer.send(assign(fake.base_url, turn="s/2"))
        status, log = await peer.exit()
        assert status == 76
        assert "worker.assigned_twice running=s/1 assigned=s/2" in log

    play(tmp_path, tale)


def test_a_setup_that_was_not_asked_for_is_a_breach_of_protocol(tmp_path: Path) -> None:
    async def tale(peer: Peer) -> None:
        peer.send(Setup(AgentSpec("default", "builtin")))
        status, log = await peer.exit()
        assert status == 76
        assert "worker.set_up_unasked" in log

    play(tmp_path, tale)


@pytest.mark.parametrize("content", [b"", b"\x01junk", b"\x63" + encode(Ack(1))[1:]])
def test_an_unreadable_frame_is_a_breach_of_protocol(tmp_path: Path, content: bytes) -> None:
    async def tale(peer: Peer) -> None:
        peer.send_bytes(content)
        status, log = await peer.exit()
        assert status == 76
        assert "worker.frame_unreadable" in log

    play(tmp_path, tale)


def test_a_steer_for_another_turn_or_attempt_is_not_taken(tmp_path: Path, fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[{"name": "shell", "arguments": {"command": "true"}}])

    async def tale(peer: Peer) -> None:
        peer.send(Steer("s/1", 1, "m_early", "before its turn"))
        # The tool runs after its start is acknowledged, and the acknowledgement follows these steers.
        peer.send(assign(fake.base_url))
        peer.send(Steer("s/0", 1, "m_turn", "of another turn"))
        peer.send(Steer("s/1", 9, "m_attempt", "of another attempt"))
        peer.send(Steer("s/1", 1, "m_right", "of this attempt"))
        await peer.until(lambda: peer.of(Finished))
        assert peer.of(Steered) == [Steered("s/1", 1, "m_right")]

    play(tmp_path, tale)
    said = [message["content"] for message in fake.requests()[-1].messages if message["role"] == "user"]
    assert said == ["hello", "of this attempt"]


def test_a_supervisor_that_does_not_acknowledge_makes_the_agent_wait(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        turn, words = await fill(peer, fake)
        # Many more words lie at the worker's door before anything is acknowledged, and none came through it.
        full, told = len(peer.frames), peer.spoken(turn).count("word")
        await asyncio.to_thread(
            fake.wait, lambda requests: requests[-1].ended or requests[-1].tokens > told + 500
        )
        assert len(peer.frames) == full
        while not ended(peer, turn):
            seen = len(peer.frames)
            peer.send(Ack(peer.numbers[-1]))
            await peer.until(lambda seen=seen: len(peer.frames) > seen)  # type: ignore[misc]
        (end,) = ended(peer, turn)
        assert end.text == peer.spoken(turn)
        assert end.text.count("word") == words

    play(tmp_path, tale, acknowledges=lambda frame: False)


def test_a_beat_takes_no_place_beyond_the_bound(tmp_path: Path) -> None:
    """A supervisor with a full disk acknowledges nothing, and ends a worker that goes on sending."""

    async def scene() -> None:
        ours, its = connected_pair(str(tmp_path))
        channel = Channel(ours, lambda parts: None, lambda reason: None, UNSENT_BYTES_MAX)
        life = Lifecycle(Fork(7, 3, 41, "", CellSpec("sweep"), frames=its.detach()))
        while life._outbox.has_room:
            last = life._outbox.post(Ready())
        life._beat()
        life._beat()
        life._outbox.acknowledge(last)
        life._beat()
        assert life._outbox.post(Ready()) == last + 2
        life._wire.close()
        channel.close()

    asyncio.run(scene())


async def fill(peer: Peer, fake: FakeModel) -> tuple[str, int]:
    """Has a turn speak until no further frame may be sent; the turn and the number of its words.

    Words that meet in one tick travel together, so more words are needed than frames: the more, the less time
    the worker gets. A turn that ended with room left is followed by one of twice as many words.
    """
    for doubled in range(6):
        turn, words = f"s/{doubled + 1}", 4 * UNACKNOWLEDGED_FRAMES_MAX << doubled
        safe = len(peer.frames)
        peer.send(Ack(peer.numbers[-1]))
        peer.send(assign(fake.base_url, f"[[slow interval=0 count={words}]]", turn=turn))

        def is_full(safe: int = safe) -> bool:
            return len(peer.frames) == safe + UNACKNOWLEDGED_FRAMES_MAX

        def is_over(turn: str = turn) -> bool:
            return bool(ended(peer, turn))

        await peer.until(lambda full=is_full, over=is_over: full() or over())  # type: ignore[misc]
        if is_full() and not is_over():
            return turn, words
    raise AssertionError("every turn ended with room left for frames")


def ended(peer: Peer, turn: str) -> list[Finished]:
    return [frame for frame in peer.of(Finished) if isinstance(frame, Finished) and frame.turn == turn]


def test_collected_messages_are_asked_as_one(tmp_path: Path, fake: FakeModel) -> None:
    async def tale(peer: Peer) -> None:
        one = assign(fake.base_url, "first")
        both = Assign(
            one.session, one.turn, 1, (*one.messages, *assign("", "second").messages), one.agent, one.model
        )
        end = await peer.run(both)
        assert isinstance(end, Finished)
        assert end.text == "You said: first\n\nsecond"

    play(tmp_path, tale)
