"""The client and a connection that is lost while an answer is awaited."""

from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import Done, HandOver
from tests.hermesctl.peer import Peer, opened


class LosingClient(Client):
    """Its supervisor goes while it looks whether it is there, and may answer in that moment."""

    def __init__(self, peer: Peer, *last: Done) -> None:
        super().__init__(peer.places)
        self._peer = peer
        self._last = last

    def is_lost(self) -> bool:
        self._peer.say(HandOver, *self._last)
        return True


def test_an_answer_that_comes_together_with_the_end_is_not_lost(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = LosingClient(peer, Done(("demo/1",)))
        assert client.ask(HandOver(), Done).turns == ("demo/1",)
        client.close()


def test_without_an_answer_the_loss_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = LosingClient(peer)
        with pytest.raises(NotRunning, match="the supervisor has gone"):
            client.ask(HandOver(), Done)
        client.close()
