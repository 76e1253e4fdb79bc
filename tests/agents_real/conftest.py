"""Every test here has a service of its own and shares the fake model server of the acceptance tests."""

from tests.acceptance.conftest import make_service as make_service
from tests.acceptance.conftest import model as model
from tests.acceptance.conftest import model_server as model_server
from tests.kinds.conftest import served as served
from tests.kinds.conftest import stage as stage
