"""One forge of supervisors for all crash tests of a test process."""

from collections.abc import Iterator

import pytest

from tests.crash.lives import Forge


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    forge = Forge()
    yield forge
    forge.close()
