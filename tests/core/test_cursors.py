"""A session's cursors are bounded, and those it has go on being moved."""

from supervisor.core.cursors import CURSORS_PER_SESSION_MAX
from supervisor.core.effects import Done, Refused
from tests.world import World


def test_a_client_that_makes_up_names_is_refused_and_the_others_go_on() -> None:
    world = World()
    world.says("s", "hello")
    answers = [world.has_read(f"client-{each}", "s", 1) for each in range(CURSORS_PER_SESSION_MAX + 1)]
    assert all(isinstance(answer, Done) for answer in answers[:-1])
    assert isinstance(answers[-1], Refused)
    world.says("s", "more")
    assert isinstance(world.has_read("client-0", "s", 2), Done)
    assert world.journal.cursors("s")["client-0"] == 2
