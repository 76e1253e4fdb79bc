"""Sessions that test the isolation of an agent: what their workers are told of the settings."""

from pathlib import Path

import pytest

from ipc.isolation import KIND
from supervisor.config.settings import load
from supervisor.workers.isolation_sessions import spec

SETTINGS = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "nobody asks it"
api_key_env = "A_KEY"
[workers]
cell = "{cell}"
memory_max = "256MB"
processes_max = 77
files_max = 88
[agents.coder]
[agents.coder.sandbox]
network = "none"
[agents.reader]
"""


@pytest.mark.parametrize(("cell", "tried"), [("auto", "pidns"), ("cgroup", "cgroup")])
def test_the_worker_of_a_trial_is_told_where_keys_are_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, tried: str
) -> None:
    monkeypatch.setenv("A_KEY", "the value of the key")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/hermes")
    (tmp_path / "hermes.toml").write_text(SETTINGS.format(cell=cell))
    settings = load(tmp_path / "hermes.toml")
    found = spec(settings, "isolation:coder")
    assert found is not None
    assert (found.name, found.kind) == ("coder", KIND)
    assert found.options["cell"] == tried
    assert found.options["network"] == "none"
    assert {"coder", "reader"} <= set(found.options["agents"])
    assert "A_KEY" in found.options["variables"]
    assert found.options["memory_bytes_max"] == 256_000_000
    assert (found.options["processes_max"], found.options["files_max"]) == (77, 88)
    assert found.options["keys"] == ["/run/credentials/hermes"]
    assert "the value of the key" not in repr(found)


def test_any_other_session_is_no_trial(tmp_path: Path) -> None:
    assert spec(load(tmp_path / "hermes.toml"), "coder") is None
