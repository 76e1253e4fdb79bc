"""Every test here has a service of its own, as in tests/acceptance."""

from tests.acceptance.conftest import make_service as make_service
from tests.kinds.conftest import served as served
from tests.kinds.conftest import stage as stage
