"""One suite over all kinds of agents: a scenario is written once, a kind says how its agent is scripted."""

import pytest

pytest.register_assert_rewrite("tests.kinds.scenarios")
