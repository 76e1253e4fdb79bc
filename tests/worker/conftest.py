"""What the worker's tests share: one fake model server a test, and the supervisor's side of the wire."""

from collections.abc import Iterator

import pytest

from tests.fake_model import FakeModel


@pytest.fixture(scope="session")
def _fake() -> Iterator[FakeModel]:
    with FakeModel() as server:
        yield server


@pytest.fixture
def fake(_fake: FakeModel) -> FakeModel:
    """The fake model server in its normal mode, with nothing asked of it yet."""
    _fake.reset()
    return _fake
