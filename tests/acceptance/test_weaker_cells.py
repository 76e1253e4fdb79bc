"""Where the promised cell cannot be had no agent starts, until hermes.toml takes a weaker one."""

from collections.abc import Callable

from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until


def test_h11_no_weaker_cell_is_taken_silently(make_service: Callable[..., Service], model: FakeModel) -> None:
    service = make_service("tests.acceptance.without_namespaces", workers="count = 1")
    until(lambda: "none, so no agent starts" in service.status()["cell"])
    assert "unshare: Operation not permitted" in service.status()["cell"]
    assert 'cell = "sweep"' in service.status()["cell"]
    until(lambda: all(row["state"] in ("resting", "failed") for row in service.show("workers")))
    until(lambda: "none can be started" in service.say("demo", "hello", busy="queue").note)
    assert "Operation not permitted" in service.hermesctl("status").stdout
    tried = service.hermesctl("doctor", "--isolation")
    assert tried.returncode == 5
    assert "no cell can be tried: none, so no agent starts" in tried.stderr
    assert model.requests() == []
    service.stop()
    settings = settings_for(model, workers='count = 1\ncell = "sweep"')
    service.places.settings_file.write_text(settings)
    service.start()
    assert "chosen in hermes.toml" in service.status()["cell"]
    assert service.listen("demo").ending("demo/1").type == "turn.done"
