"""What the stories of binding and supply do not print: what the line keeps."""

from supervisor.core.policy import Policy
from tests.world import World


def test_a_turn_that_is_replaced_again_and_again_leaves_nothing_behind() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.says("s", "one")
    for _ in range(100):
        world.says("s", "rather this", busy="interrupt")
    assert len(world.state.lines["default"]) == 1
