"""Several events in one batch, refused commits and stalls, by the production decider."""

from supervisor.core.effects import Accepted, Answer, Done, Effect, KillWorker, Refused, StartWorker
from supervisor.core.events import (
    BeginAsked,
    DropAsked,
    EventsSeen,
    InterruptAsked,
    ScaleAsked,
    StoodStill,
    TextArrived,
    TextStreamed,
    VoiceArrived,
    WorkerAlive,
)
from supervisor.core.policy import Policy
from supervisor.core.records import CursorMoved, MessageAccepted
from supervisor.core.state import BusyMode
from tests.world import World


class Performed(World):
    """Remembers what was performed, in that order."""

    def __init__(self, policy: Policy) -> None:
        self.acts: list[Effect] = []
        super().__init__(policy)

    def act(self, effect: Effect) -> None:
        super().act(effect)
        self.acts.append(effect)


def ready_world() -> Performed:
    world = Performed(Policy(busy_seats=2, spares=0))
    world.worker_ready()
    return world


def text(session: str, message: str, words: str = "hello") -> TextArrived:
    return TextArrived(session, message, message, words, BusyMode.QUEUE)


def answers(world: World, count: int) -> list[Answer | None]:
    return [step.decision.answer for step in world.steps[-count:]]


def test_a_key_that_comes_twice_in_a_batch_is_one_message() -> None:
    world = ready_world()
    world.says("s", "first")
    world.tell_together(text("s", "k"), text("s", "k"), text("s", "k", "other words"))
    first, again, other = answers(world, 3)
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.again, again.again, first.seq) == (False, True, again.seq)
    assert isinstance(other, Refused)
    records = [record for step in world.steps[-3:] for record in step.decision.records]
    assert sum(isinstance(record, MessageAccepted) for record in records) == 1


def test_a_clip_that_comes_twice_in_a_batch_is_one_message() -> None:
    world = ready_world()
    world.says("s", "first")
    clip = VoiceArrived("s", "m", "m", "clip", BusyMode.QUEUE)
    world.tell_together(clip, clip)
    first, again = answers(world, 2)
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.again, again.again, first.seq) == (False, True, again.seq)
    world.understands("m")


def test_a_session_that_is_begun_twice_in_a_batch_begins_once() -> None:
    world = ready_world()
    world.tell_together(*(BeginAsked("s", key, "", 0, ("{}",)) for key in ("one", "one", "two")))
    first, again, other = answers(world, 3)
    assert (type(first), type(again), type(other)) == (Done, Done, Refused)
    assert [record.type for step in world.steps[-3:] for record in step.decision.records] == ["session.begun"]


def test_a_cursor_that_moves_twice_in_a_batch_does_not_move_back() -> None:
    world = ready_world()
    world.says("s", "hello")
    world.tell_together(EventsSeen("s", "bridge", 2), EventsSeen("s", "bridge", 1))
    records = [record for step in world.steps[-2:] for record in step.decision.records]
    assert [record.seen for record in records if isinstance(record, CursorMoved)] == [2]


def test_a_cursor_that_the_journal_has_does_not_move_back_in_a_batch_either() -> None:
    """What the batch itself has decided counts, and not where the journal still has the cursor."""
    world = ready_world()
    world.says("s", "hello")
    world.has_read("bridge", "s", 1)
    world.tell_together(EventsSeen("s", "bridge", 3), EventsSeen("s", "bridge", 2))
    records = [record for step in world.steps[-2:] for record in step.decision.records]
    moved = [(record.before, record.seen) for record in records if isinstance(record, CursorMoved)]
    assert moved == [(1, 3)]
    assert world.journal.cursors("s") == {"bridge": 3}


def test_a_batch_has_a_bound_and_the_rest_follows_in_order() -> None:
    world = ready_world()
    world.tell_together(*(text("s", f"k{number}") for number in range(9)))
    assert [step.event.message for step in world.steps[-9:] if isinstance(step.event, TextArrived)] == [
        f"k{number}" for number in range(9)
    ]
    assert world.batches[-3:] == [4, 4, 1]


def test_words_wait_for_the_next_batch_and_keep_their_place() -> None:
    world = ready_world()
    world.says("s", "hello")
    words = TextStreamed(world.process(0).who, "s/1", 1, "words")
    world.post(words)
    assert not world.is_urgent
    world.tell_together(InterruptAsked("s", "someone"))
    assert [type(step.event) for step in world.steps[-2:]] == [TextStreamed, InterruptAsked]


def test_the_end_of_a_turn_is_performed_first_and_starts_last() -> None:
    world = ready_world()
    world.says("s", "hello")
    world.acts.clear()
    world.tell_together(
        ScaleAsked(3), text("t", "k"), InterruptAsked("s", "someone"), DropAsked("t", None, "x")
    )
    assert isinstance(world.acts[0], KillWorker)
    assert world.acts[0].turn == "s/1"
    assert isinstance(world.acts[-1], StartWorker)
    assert len(world.acts) > 2


def test_a_worker_is_started_before_it_is_killed_in_the_same_batch() -> None:
    world = ready_world()
    world.acts.clear()
    world.tell_together(ScaleAsked(3), ScaleAsked(2))
    started, killed = world.acts
    assert isinstance(started, StartWorker)
    assert isinstance(killed, KillWorker)
    assert started.incarnation == killed.incarnation


def test_the_time_of_a_refused_commit_is_a_stall_from_its_first_refusal() -> None:
    world = ready_world()
    who = world.process(0).who
    world.tell_while_the_disk_is_full(
        text("s", "k"), 40.0, meanwhile=[WorkerAlive(who, "pulse"), text("t", "l")]
    )
    assert [step.event for step in world.steps if isinstance(step.event, StoodStill)] == [StoodStill(40.0)]
    assert not any(isinstance(step.event, WorkerAlive) for step in world.steps)
    assert set(world.state.sessions) == {"s", "t"}
    assert not any(isinstance(act, KillWorker) for act in world.acts)
    world.tell(WorkerAlive(who, "pulse"))
    assert world.steps[-1].event == WorkerAlive(who, "pulse"), "signs of life count again"


def test_a_deadline_missed_by_a_moment_is_no_stall() -> None:
    world = ready_world()
    world.now += world.policy.pulse_seconds + 1.9
    world.step()
    assert not any(isinstance(step.event, StoodStill) for step in world.steps)
    assert any(isinstance(act, KillWorker) for act in world.acts)


def test_a_deadline_missed_by_more_is_a_stall() -> None:
    world = ready_world()
    world.passes(100.0)
    seconds = world.policy.pulse_seconds + 2.1
    world.stands_still(seconds)
    assert not any(isinstance(act, KillWorker) for act in world.acts)
    [stood_still] = [step.event for step in world.steps if isinstance(step.event, StoodStill)]
    assert round(stood_still.seconds, 6) == seconds, "since the last batch"


def test_a_stall_counts_in_one_batch_and_not_in_those_after_it() -> None:
    """Deadlines that are moved with every batch would never come."""
    world = ready_world()
    world.tell_while_the_disk_is_full(text("s", "k"), 40.0, meanwhile=[])
    for number in range(3):
        world.tell(text("s", f"l{number}"))
    assert [step.event for step in world.steps if isinstance(step.event, StoodStill)] == [StoodStill(40.0)]
