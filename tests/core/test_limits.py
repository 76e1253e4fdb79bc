"""What the stories do not print: since when a limit is passed, and how demand fades."""

from supervisor.core.policy import Policy
from tests.world import World

_MIB = 1024 * 1024


def test_a_limit_that_is_still_passed_keeps_its_first_moment() -> None:
    world = World(Policy(memory_free_bytes_min=100 * _MIB))
    world.host_has(64)
    world.passes(5)
    world.host_has(32)
    assert [strain.since for strain in world.state.strains.values()] == [1000.0]
    assert "32 MiB" in world.state.strains["memory"].error
    world.host_has(200)
    world.host_has(64)
    assert world.state.strains["memory"].since == 1005.0


def test_draining_twice_has_one_beginning() -> None:
    world = World()
    world.drains()
    world.passes(5)
    world.drains()
    assert world.state.intake_since == 1000.0
    world.undrains()
    assert not world.state.draining


def test_who_corrects_himself_keeps_place_and_time_in_the_line() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    world.says("s", "one")
    world.dies(0)
    world.passes(3)
    world.says("t", "two")
    world.says("s", "rather this", busy="interrupt")
    assert [(name, place.since) for name, place in world.state.queued.items()] == [
        ("s", 1000.0),
        ("t", 1003.0),
    ]


def test_messages_are_put_together_as_long_as_all_their_words_fit_one_turn() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.says("s", "a" * 400_000)
    world.says("s", "b" * 600_000, busy="interrupt")
    world.says("s", "c", busy="interrupt")
    world.worker_ready()
    turn = world.state.sessions["s"].turn
    assert turn is not None
    assert [message.text[0] for message in turn.messages] == ["a", "b"]
    world.finishes("s/1")
    turn = world.state.sessions["s"].turn
    assert turn is not None
    assert [message.text for message in turn.messages] == ["c"]


def test_a_host_that_stood_still_was_not_missing_workers() -> None:
    world = World(Policy(busy_seats=2, spares=0))
    world.worker_ready()
    world.says("s", "one")
    world.interrupts("s")
    world.stands_still(500)
    world.dies(0)
    world.worker_ready()
    assert world.state.spares_more == 0


def test_fewer_seats_need_fewer_spares_for_those_that_are_away() -> None:
    world = World(Policy(busy_seats=4, spares=0))
    world.worker_ready()
    world.says("s", "one")
    world.says("t", "two")
    world.interrupts("s")
    world.interrupts("t")
    world.passes(100)
    for seat in (0, 1):
        world.dies(seat)
    world.worker_ready()
    assert world.state.spares_more > 1
    world.scales(1)
    assert world.state.spares_more == 1
