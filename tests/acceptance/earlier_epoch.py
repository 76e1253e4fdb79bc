"""`python -m tests.acceptance.earlier_epoch HOME`: `bench.pretend`, with a link of another epoch.

No socket survives its supervisor, so no process can send a frame of an earlier epoch. Here the link of the
worker that was assigned a turn of that session is taken for one of the epoch before.
"""

import sys
from dataclasses import replace

import uvloop

from bench.pretend import live
from supervisor.core.effects import AssignTurn
from supervisor.workers import router
from supervisor.workers.link import Links

SESSION = "earlier"


class _Links(Links):
    def assign(self, effect: AssignTurn) -> None:
        super().assign(effect)
        if effect.session == SESSION:
            link = self.of[effect.who.incarnation]
            link.who = replace(link.who, epoch=link.who.epoch - 1)


if __name__ == "__main__":
    assert hasattr(router, "Links")
    router.Links = _Links
    uvloop.run(live(sys.argv[1]))
