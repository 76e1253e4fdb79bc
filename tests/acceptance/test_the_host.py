"""How the service starts, refuses and ends, as its user sees it."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc import interpreter
from tests import warm
from tests.acceptance.sight import alive, descendants
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until


def processes_of(service: Service) -> list[int]:
    """Every process that belongs to this home: found by its folder in a command line or an environment."""
    marks = (os.fsencode(service.home), os.fsencode(service.places.runtime))
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            content = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if any(mark in content for mark in marks):
            found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def test_ctrl_c_ends_everything_within_a_moment(service: Service) -> None:
    assert service.process is not None
    service.say("demo", "[[silent]] wait")
    until(lambda: service.status()["running"] == 1)
    family = descendants(service.process.pid)
    assert len(family) > 3
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(5) == 0
    assert alive(family) == set()
    assert processes_of(service) == []


def test_a_killed_supervisor_leaves_no_process_behind(service: Service) -> None:
    assert service.process is not None
    service.say("demo", "[[silent]] wait")
    until(lambda: service.status()["running"] == 1)
    family = descendants(service.process.pid)
    service.kill()
    until(lambda: not alive(family), deadline_seconds=5)


def test_d14_a_second_supervisor_is_refused_with_the_pid_of_the_first(service: Service) -> None:
    assert service.process is not None
    second = warm.run(interpreter.command("supervisor", "--home", str(service.home)), timeout=30)
    assert second.returncode == 75
    assert str(service.process.pid) in second.stderr
    assert service.hermesctl("send", "demo", "hello").returncode == 0


def test_a_wrong_key_in_the_settings_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "hermes.toml").write_text("[workers]\nper_cpus = 2\n")
    refused = warm.run(interpreter.command("supervisor", "--home", str(tmp_path)), timeout=30)
    assert refused.returncode == 78
    assert "per_cpus" in refused.stderr
    assert "per_cpu" in refused.stderr
    assert "line 2" in refused.stderr


def test_provider_faults_are_one_sentence_with_a_remedy(
    make_service: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    service = make_service(workers="count = 1")
    model.set_mode("401")
    wrong_key = service.hermesctl("send", "one", "hello")
    model.set_mode("404")
    wrong_url = service.hermesctl("send", "two", "hello")
    for sent, key in ((wrong_key, "api_key"), (wrong_url, "base_url")):
        assert sent.returncode == 4
        assert key in sent.stderr
        assert "Traceback" not in sent.stderr


def test_an_unreachable_model_is_named(tmp_path: Path) -> None:
    settings = '[model]\nbase_url = "http://127.0.0.1:1/v1"\nname = "none"\n[stt]\nengine = "off"\n'
    settings += '[turns]\noutage_max = "1s"\n'
    with Service(tmp_path / "home", settings) as service:
        sent = service.hermesctl("send", "demo", "hello", timeout=120)
    assert sent.returncode == 4
    assert "127.0.0.1:1" in sent.stderr
    assert "base_url" in sent.stderr


def test_a_missing_key_variable_stops_the_start_with_its_remedy(tmp_path: Path, model: FakeModel) -> None:
    settings = settings_for(model).replace("[model]", '[model]\napi_key_env = "HERMES_TEST_NO_SUCH_KEY"')
    (tmp_path / "hermes.toml").write_text(settings)
    refused = warm.run(interpreter.command("supervisor", "--home", str(tmp_path)), timeout=30)
    assert refused.returncode == 78
    assert "HERMES_TEST_NO_SUCH_KEY" in refused.stderr


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_e10_the_log_holds_neither_texts_nor_keys(tmp_path: Path, model: FakeModel, form: str) -> None:
    settings = settings_for(model, log=f'format = "{form}"')
    settings = settings.replace("[model]", '[model]\napi_key_file = "key"')
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").write_text("sk-very-secret-key")
    with Service(home, settings) as service:
        service.hermesctl("send", "demo", "the-secret-text-of-a-person")
        (home / "hermes.toml").write_text(
            settings + '[agents.poet]\nsystem = "the-secret-text-of-a-prompt"\n'
        )
        (home / "key").write_text("sk-very-secret-key-2")
        assert service.hermesctl("reload").returncode == 0
        model.set_mode("401")
        service.hermesctl("send", "demo", "the-secret-text-of-a-person")
        (home / "hermes.toml").write_text('[model]\napi_key = "sk-very-secret-key"\n')
        assert "sk-very-secret-key" not in service.hermesctl("reload").stderr
        written = "".join(path.read_text() for path in home.rglob("*.log"))
    assert "the-secret-text" not in written
    assert "sk-very-secret-key" not in written
    assert {"turn.done", "settings.changed", "settings.refused"} <= set(
        re.findall(r"[a-z]+\.[a-z]+", written)
    )
