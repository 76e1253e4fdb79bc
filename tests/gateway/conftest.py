"""A service and a gateway for all tests of a module that kill neither."""

from collections.abc import Iterator

import pytest

from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.service import Service, settings_for
from tests.waiting import until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    settings = settings_for(model_server, workers="count = 2", turns='waiting_max = 3\nbusy = "queue"')
    with Service(tmp_path_factory.mktemp("service") / "home", settings) as service:
        yield service


@pytest.fixture(scope="module")
def gateway(service: Service) -> Iterator[GatewayProcess]:
    with GatewayProcess(service.places) as gateway:
        # It listens before it has reached the supervisor.
        until(lambda: gateway.client("").get("/health").status_code == 200)
        yield gateway
