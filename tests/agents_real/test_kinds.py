"""The scenarios of tests/kinds with agents that people use."""

import pytest

from tests.agents_real.real_kinds import KINDS
from tests.kinds.scenarios import Scenarios, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, KINDS)


class TestKinds(Scenarios):
    pass
