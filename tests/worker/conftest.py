"""What the worker's tests share: one fake model server a test, and the supervisor's side of the wire."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from worker import output_files


@pytest.fixture
def fake(model: FakeModel) -> FakeModel:
    return model


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path) -> Iterator[Path]:
    """The folder of long outputs, for agents that run in the test's own process."""
    output_files.keep_in(str(tmp_path))
    yield tmp_path / output_files.FOLDER
    output_files.keep_in(".")
