"""`python -m tests.acceptance.stuck_engine`: the supervisor, whose engine loses a step while a file exists.

It is a defect that raises nothing: the loop turns, requests that need no decision are answered, and nothing
moves. The file is named by HERMES_TEST_STUCK.
"""

import os

from supervisor import engine, entry

_MARK = os.environ["HERMES_TEST_STUCK"]


def _is_marked() -> bool:
    return os.path.exists(_MARK)


class _Losing(engine.Engine):
    async def _step(self) -> None:
        if not _is_marked():
            await super()._step()


if __name__ == "__main__":
    from supervisor import wiring

    assert hasattr(wiring, "Engine")
    wiring.Engine = _Losing
    entry.main()
