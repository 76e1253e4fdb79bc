"""Without a [model], the embedded one answers: real weights, and the context of the turn before."""

from pathlib import Path

from tests.service import Service
from tests.weights import pulled

_SETTINGS = '[workers]\ncount = 1\n[stt]\nengine = "off"\n'


def test_the_embedded_model_answers_and_knows_the_context(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("smollm2-135m"))
    with Service(home, _SETTINGS) as service:
        first = service.hermesctl("send", "demo", "What is the capital of France?", timeout=110)
        second = service.hermesctl("send", "demo", "And of Italy?", timeout=110)
        [model] = service.show("services")
    assert "Paris" in first.stdout, first.stderr
    assert "Rome" in second.stdout
    assert model["state"] == "ready"


def test_missing_weights_fail_turns_with_the_command_that_mends_it(tmp_path: Path) -> None:
    with Service(tmp_path / "home", _SETTINGS) as service:
        sent = service.hermesctl("send", "demo", "hello")
        (row,) = service.show("services")
        assert (row["state"], row["pid"], row["restarts"]) == ("waiting", None, 0)
        status = service.hermesctl("status").stdout
    assert sent.returncode == 4
    assert "hermesctl models pull smollm2-135m" in sent.stderr
    assert "hermesctl models pull smollm2-135m" in status
