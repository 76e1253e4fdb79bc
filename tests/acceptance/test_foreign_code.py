"""Code left in a working directory, in a home or in the environment is run by no process of ours."""

import asyncio
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ipc.interpreter import FLAGS, OURS
from ipc.places import find_places
from stt_service.decoder_pool import DecoderPool
from stt_service.options import Limits
from supervisor.llm.embedded import MODEL_FILE, MODEL_NAME
from tests.acceptance.sight import descendants
from tests.acceptance.trap import Trap
from tests.fake_model import FakeModel
from tests.hermesctl.hand import ROOT, environment
from tests.service import Service, settings_for
from tests.stt_service.sounds import file_of, tone
from tests.waiting import until

# Python's and the loader's, by which code is named that a process is to run.
NAMES_OF_CODE = ("PYTHON", "LD_PRELOAD")
COMMAND_SECONDS = 120


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def run(*line: str, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(line, cwd=cwd, env=env, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.timeout(400)
def test_h7_modules_in_the_working_directory_are_not_imported(
    trap: Trap, tmp_path: Path, model: FakeModel
) -> None:
    trap.fill()
    service = Service(tmp_path / "home", settings_for(model, workers="count = 1"))

    def hermesctl(*words: str) -> str:
        line = (sys.executable, "-m", "hermesctl", "--home", str(service.home), *words)
        return run(*line, cwd=trap.folder, env=environment())

    run(
        sys.executable,
        "-m",
        "supervisor",
        "--home",
        str(service.home),
        "--check",
        cwd=trap.folder,
        env=environment(),
    )
    hermesctl("start")
    try:
        assert "hello" in hermesctl("send", "demo", "hello")
        hermesctl("status")
        hermesctl("doctor", "--json")
        hermesctl("restart", "--keep-turns")
    finally:
        hermesctl("stop")
    hermesctl("journal", "check")
    hermesctl("start")
    hermesctl("stop")
    assert trap.victims == []


@pytest.mark.timeout(400)
def test_h7_neither_a_home_nor_the_environment_brings_code_into_a_service_that_lies_in_a_users_site_folder(
    trap: Trap, tmp_path: Path, model: FakeModel
) -> None:
    """As after `pip install --user`: our own packages lie where the trap does."""
    home = tmp_path / "you"
    site = trap.user_site(home)
    for package in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if package.suffix != ".pth":
            (site / package.name).symlink_to(package)
    for name in OURS:
        (site / name).symlink_to(ROOT / name)
    script = home / "hermesctl"
    script.write_text("from hermesctl.main import main\nmain()\n")
    trap.module(trap.folder / "sitecustomize.py")
    trap.module(home / "startup.py")
    settings = settings_for(model, stt="", workers="count = 1")
    service = Service(tmp_path / "home", settings)
    # Weights that are nothing of the kind: the services start, look at them and say so.
    speech = [f"tiny.en/{name}" for name in ("model.bin", "config.json", "tokenizer.json")]
    for file in (*speech, f"{MODEL_NAME}/{MODEL_FILE}"):
        weights = service.places.models / file
        weights.parent.mkdir(parents=True, exist_ok=True)
        weights.write_bytes(b"x")
    variables = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(trap.folder),
        "PYTHONSTARTUP": str(home / "startup.py"),
        "LD_PRELOAD": str(home / "preloaded.so"),
    }
    base = getattr(sys, "_base_executable", sys.executable)

    def hermesctl(*words: str) -> str:
        return run(base, str(script), "--home", str(service.home), *words, cwd=home, env=variables)

    hermesctl("start")
    try:
        assert "hello" in hermesctl("send", "demo", "hello")
        supervisor = service.status()["pid"]
        until(lambda: {row["service"] for row in service.show("services")} == {"stt"})
        check_processes(supervisor)
        # Without [model] the embedded one is started.
        (service.home / "hermes.toml").write_text('[gateway]\nlisten = "127.0.0.1:0"\n')
        hermesctl("reload", "--yes")
        until(lambda: {row["service"] for row in service.show("services")} == {"stt", "model", "gateway"})
        hermesctl("restart", "--keep-turns")
        check_processes(supervisor)
    finally:
        hermesctl("stop")
    hermesctl("journal", "check")
    # For a program that is installed in a user's site folder Python itself runs what else lies there: the
    # command is such a program. What it starts is not.
    assert {line[1] for line in trap.victims} == {str(script)}
    logs = find_places(str(service.home)).logs
    assert [log.name for log in logs.iterdir() if "ld.so" in log.read_text()] == []


def check_processes(supervisor: int) -> None:
    """Every interpreter below and the supervisor itself."""
    lines = {}
    for pid in descendants(supervisor):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue  # it has ended meanwhile
        lines[pid] = line
        assert [one for one in variables if one.decode().startswith(NAMES_OF_CODE)] == []
        if b"worker.zygote" not in line:
            assert folder == "/", line
    assert len(lines) >= 4, "supervisor, guard, zygote and a worker"
    for line in lines.values():
        assert [word.decode() for word in line[1:4]] == list(FLAGS), line


def test_h7_a_decoder_of_clips_takes_no_code_from_its_environment(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap.module(trap.folder / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(trap.folder))
    monkeypatch.chdir(trap.folder)

    async def decode() -> int:
        async with DecoderPool(Limits()) as pool:
            return len((await pool.decode(file_of(tone(0.5)))).samples)

    assert asyncio.run(decode()) > 0
    assert trap.victims == []
