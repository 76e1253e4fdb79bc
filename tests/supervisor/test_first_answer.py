"""The first answer a supervisor gives is as true as any later one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hermesctl.errors import NotRunning
from tests.service import Service
from tests.waiting import until

# Voice is on; its weights are missing, which the service row must say or be about to find out.
SETTINGS = '[model]\nbase_url = "http://127.0.0.1:9/v1"\nname = "unused"\n[workers]\ncount = 1\n'


class Awaited(Service):
    """A supervisor that stands still between opening its control socket and the first request."""

    def start(self) -> None:
        """Asks nothing: the first request is the test's."""
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.supervisor.awaited_supervisor"],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "HERMES_SUPERVISOR_HOME": str(self.home)},
            )


def first_answer(service: Service) -> list[list[dict[str, Any]]]:
    """The rows as the only element, so that no rows at all is an answer too; empty while nobody listens."""
    try:
        return [service.show("services")]
    except NotRunning:
        return []


def test_the_first_request_is_answered_with_every_service(tmp_path: Path) -> None:
    with Awaited(tmp_path / "home", SETTINGS) as service:
        (rows,) = until(lambda: first_answer(service))
        assert [row["service"] for row in rows] == ["stt"]
