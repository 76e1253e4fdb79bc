"""A service and a gateway for all tests of a module, as in tests/gateway."""

from tests.gateway.conftest import gateway as gateway
from tests.gateway.conftest import service as service
