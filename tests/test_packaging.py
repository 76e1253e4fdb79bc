"""What the wheel installs works without extras; where one is needed, a sentence names it."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.house_rules import PRODUCT, ROOT
from tests.service import settings_for

_NOT_PACKAGED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "bench")


def _run(*command: object, code: int = 0, folder: Path | None = None) -> str:
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "HOME": str(folder or "/")}
    line = [str(word) for word in command]
    run = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == code, f"{line}: {run.returncode}\n{run.stdout}{run.stderr}"
    return run.stdout + run.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and with the wheel that is built from that archive."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "source", ignore=_NOT_PACKAGED)
    _run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source",
        folder=folder,
    )  # fmt: skip
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it depends on, and none of the extras."""
    folder = tmp_path_factory.mktemp("installed")
    _run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (wheel,) = built.glob("*.whl")
    for name in _needed(_requirements(wheel)):
        _copy(metadata.distribution(name), packages)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin" / "python")
    _run(*pip, "install", "--no-deps", "--no-index", wheel, folder=folder)
    return folder / "bin"


def _requirements(wheel: Path) -> list[str]:
    """As the wheel has them: what is installed here may be older."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(files.read(name)).get_all("Requires-Dist", [])


def _needed(requirements: list[str]) -> set[str]:
    """The distributions that these lines name without extras, and all that those need here."""
    found: set[str] = set()
    left = list(requirements)
    while left:
        line = left.pop()
        requirement = re.match(r"[A-Za-z0-9._-]+", line)
        assert requirement is not None
        name = requirement.group().lower().replace("_", "-")
        if "extra ==" not in line and name not in found and _is_installed(name):
            found.add(name)
            left += metadata.requires(name) or ()
    return found


def _is_installed(name: str) -> bool:
    """Requirements for other systems are not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _copy(distribution: metadata.Distribution, folder: Path) -> None:
    """With its times and bytecode, or what is installed would be compiled again; a link is a cheap copy."""
    made: set[str] = set()
    for file in distribution.files or ():
        source, target = str(distribution.locate_file(file)), os.path.join(folder, file)
        if ".." in file.parts or not os.path.exists(source):
            continue
        if (parent := os.path.dirname(target)) not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)


def test_the_archive_and_the_wheel_hold_every_file_of_the_packages(built: Path) -> None:
    packages = [room for room in PRODUCT if (ROOT / room).exists()]
    wanted = {
        str(path.relative_to(ROOT))
        for room in packages
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as files:
        assert wanted - set(files.namelist()) == set()
    with tarfile.open(archive) as files:
        inside = {name.partition("/")[2] for name in files.getnames()}
    assert wanted - inside == set()
    assert {f"{room}/py.typed" for room in packages} <= wanted


def test_a_turn_is_answered_by_what_the_wheel_installs(installed: Path, tmp_path: Path) -> None:
    home, hermesctl = tmp_path / "home", installed / "hermesctl"
    home.mkdir()
    with FakeModel() as model:
        (home / "hermes.toml").write_text(settings_for(model, stt='engine = "faster-whisper"'))
        _run(hermesctl, "--home", home, "start", folder=tmp_path)
        try:
            answer = _run(hermesctl, "--home", home, "send", "demo", "hello", folder=tmp_path)
            services = _run(hermesctl, "--home", home, "services", folder=tmp_path)
            packages = _run(hermesctl, "--home", home, "doctor", folder=tmp_path)
        finally:
            _run(hermesctl, "--home", home, "stop", folder=tmp_path)
    assert "You said: hello" in answer
    assert "the packages for voice are not installed" in services
    assert "hermes-supervisor[voice]" in services
    assert re.search(r"packages .*without embedded and gateway and tui and voice", packages)


@pytest.mark.parametrize("module", ["hermesctl.chat.run", "hermesctl.top.screen"])
def test_a_screen_without_its_packages_names_the_extra(installed: Path, module: str) -> None:
    """The import alone: a terminal would be asked for first."""
    program = f"""
from hermesctl.errors import CommandError
from hermesctl.extras import extra
try:
    with extra("tui", "a screen needs packages"):
        import {module}
except CommandError as error:
    print(error, error.hint)
"""
    told = _run(installed / "python", "-c", program, folder=installed)
    assert "a screen needs packages: there is no package " in told
    assert "pip install 'hermes-supervisor[tui]'" in told
