"""One real service for all tests that leave it as it was: its weights are loaded once."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.stt_service.hearer import Hearer, hearing

Story = Callable[[Hearer], Coroutine[Any, Any, None]]
Listen = Callable[[Story], None]


@pytest.fixture(scope="session")
def listen() -> Iterator[Listen]:
    """Runs a story with the service; between two of them nobody reads what it says."""
    with asyncio.Runner() as runner:
        opened = hearing()
        hearer = runner.run(opened.__aenter__())
        yield lambda story: runner.run(story(hearer))
        runner.run(opened.__aexit__(None, None, None))
