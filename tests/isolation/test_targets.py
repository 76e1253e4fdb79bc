"""The targets of a trial: what the supervisor and the worker know is not a client's to say."""

import json
import os

import msgspec
import pytest

from ipc.isolation import Targets
from ipc.messages import AgentSpec
from worker.agents.isolation_trial import Isolation
from worker.errors import AgentError

SPEC = AgentSpec("default", "isolation", {"agents": ["default"]})


def test_what_the_supervisor_knows_replaces_what_the_client_says() -> None:
    asked = msgspec.json.encode(Targets(port=9, worker=1)).decode()
    targets = json.loads(Isolation(SPEC)._targets(asked))
    assert (targets["port"], targets["worker"]) == (9, os.getpid())


@pytest.mark.parametrize("asked", ["hello", "[]", '{"port": "none"}'])
def test_another_message_is_no_trial(asked: str) -> None:
    with pytest.raises(AgentError, match="answers nothing else"):
        Isolation(SPEC)._targets(asked)
