"""The scenarios with the agents of this project."""

import pytest

from tests.kinds.own_kinds import KINDS
from tests.kinds.scenarios import Scenarios, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, KINDS)


class TestKinds(Scenarios):
    pass
