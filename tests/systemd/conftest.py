"""One box and one fake model server for all tests; each finds the machine's service installed and running."""

from collections.abc import Iterator

import pytest

from ipc.places import SYSTEM
from tests.fake_model import FakeModel
from tests.service import settings_for
from tests.systemd.box import Box, NoBox
from tests.systemd.installed import UNIT, Installed

# So that tests need not wait for the real one; everything else is as it is installed.
WATCHDOG_SECONDS = 4
DROP_IN = f"/etc/systemd/system/{UNIT}.d/quick.conf"
KEY = "sk-of-the-machine"


def with_key(settings: str) -> str:
    return settings.replace("[model]", '[model]\napi_key_file = "$CREDENTIALS_DIRECTORY/key_model"')


@pytest.fixture(scope="session")
def box() -> Iterator[Box]:
    try:
        box = Box()
    except NoBox as reason:
        pytest.skip(str(reason))
    yield box
    box.close()


@pytest.fixture
def installed(box: Box, model: FakeModel) -> Iterator[Installed]:
    service = Installed(box, SYSTEM, "system")
    service.settings = with_key(settings_for(model, workers="count = 2"))
    if service.hermesctl("status").returncode != 0:
        box.write(DROP_IN, f"[Service]\nWatchdogSec={WATCHDOG_SECONDS}\n")
        box.write("/etc/hermes-supervisor/keys/model", f"{KEY}\n")
        service.set(service.settings)
        service.ctl("install", "--system")
    yield service
    service.__exit__(None, None, None)
