"""What befalls a world when nothing goes wrong: every accepted message must end."""

from supervisor.core.state import ModelState
from tests.world import World

# Rounds in which all must have ended: far more than the longest queue of a simulated day.
_ROUNDS_MAX = 200


def left_alone(world: World) -> None:
    """From now on workers start, answer and die when killed, and clips are understood."""
    if world.model.state is not ModelState.READY:
        world.model_is("ready")
    world.undrains()
    for process in world.processes.values():
        process.is_mute = False
    for _ in range(_ROUNDS_MAX):
        unended = world.witness.accepted.keys() - world.witness.fates().keys()
        if not unended:
            return
        be_kind(world)
    raise AssertionError(f"left alone, yet {sorted(unended)} never ended: {world.state}")


def be_kind(world: World) -> None:
    """One round in which everything goes well."""
    for name in [each.name for each in world.state.sessions.values() if each.held]:
        world.resumes(name)
    for session in list(world.state.sessions.values()):
        if session.turn is not None and session.turn.question is not None:
            world.answers(session.turn.question.id, "yes")
    for process in list(world.processes.values()):
        if (process.is_killed or process.is_unproved) and not process.is_dead:
            world.dies(process.who.seat, "killed")
    for message in sorted(world.stt):
        world.understands(message)
    world.worker_ready()
    jobs = [each.job for each in world.processes.values() if each.job is not None and each.is_heard]
    for job in jobs:
        world.finishes(job.turn)
    if not jobs:
        world.passes(1.0)
