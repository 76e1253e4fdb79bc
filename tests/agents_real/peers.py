"""Real agents, MCP servers and clients for tests; `python -m tests.agents_real.peers [NAME…]` installs them.

They go into `.agents/` of the checkout, in the versions of peers.toml; `--clients` means those of
tests/clients_real. A test asks for a peer with
`peer(name)` and is skipped, with the peer's name, where that is not installed. HERMES_PEER_NAME, such as
HERMES_PEER_HERMES_AGENT, points at a folder where it is installed already: a virtual environment, or a
prefix of npm. A `python3.13` on PATH, or the interpreter that HERMES_PEER_PYTHON313 names, is a peer too.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / ".agents"
_AGENTS = Path(__file__).with_name("peers.toml")
_CLIENTS = _ROOT / "tests" / "clients_real" / "peers.toml"
# A large program over a slow line.
_INSTALL_SECONDS_MAX = 900


@dataclass(frozen=True)
class Peer:
    name: str
    pip: tuple[str, ...]
    npm: tuple[str, ...]
    program_name: str
    # Requirements that replace those of the same name, wherever they come from.
    override: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        given = os.environ.get(f"HERMES_PEER_{self.name.upper().replace('-', '_')}")
        return Path(given) if given else _FOLDER / self.name

    @property
    def program(self) -> Path:
        return self.folder / ("bin" if self.pip else "node_modules/.bin") / self.program_name

    @property
    def _mark(self) -> Path:
        return self.folder / ".installed"

    @property
    def is_installed(self) -> bool:
        if self.folder.parent != _FOLDER:
            return self.program.exists()
        return self._mark.exists() and self._mark.read_text() == self._wanted

    @property
    def _wanted(self) -> str:
        return "\n".join((*self.pip, *self.npm, *self.override))

    def install(self) -> None:
        """Raises CalledProcessError, TimeoutExpired or FileNotFoundError where that is not possible."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.pip:
            _run(sys.executable, "-m", "venv", str(self.folder))
            self._install_python()
        if self.npm:
            _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(self.folder), *self.npm)
        self._mark.write_text(self._wanted)

    def _install_python(self) -> None:
        python = str(self.folder / "bin/python")
        pip = (python, "-m", "pip", "install", "--quiet")
        if not self.override:
            _run(*pip, *self.pip)
            return
        # pip itself cannot replace a requirement of a requirement.
        _run(*pip, "uv")
        replaced = self.folder / "override.txt"
        replaced.write_text("\n".join(self.override) + "\n")
        uv = (python, "-m", "uv", "pip", "install", "--quiet", "--python", python)
        _run(*uv, "--override", str(replaced), *self.pip)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=_INSTALL_SECONDS_MAX)


def peers(listed: Path = _AGENTS) -> dict[str, Peer]:
    return {
        name: Peer(
            name,
            tuple(each.get("pip", ())),
            tuple(each.get("npm", ())),
            each["program"],
            tuple(each.get("override", ())),
        )
        for name, each in tomllib.loads(listed.read_text()).items()
    }


def peer(name: str) -> Peer:
    """For a test: the peer, or a skip that names it."""
    found = (peers(_AGENTS) | peers(_CLIENTS))[name]
    if not found.is_installed:
        pytest.skip(f"the peer {name} is not installed: python -m tests.agents_real.peers {name}")
    return found


def python_313() -> str:
    """For a test: a Python 3.13 of this host, or a skip that names it. It is not installed here."""
    found = os.environ.get("HERMES_PEER_PYTHON313") or shutil.which("python3.13")
    # A program of that name may be a shim of pyenv, which refuses to run a version that is not installed.
    if not found or subprocess.run([found, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip("the peer python3.13 is not installed: HERMES_PEER_PYTHON313 names an interpreter")
    return found


def main(names: list[str]) -> None:
    listed = _CLIENTS if "--clients" in names else _AGENTS
    names = [name for name in names if name != "--clients"]
    known = peers(listed)
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"There is no peer {unknown[0]!r}: {listed.relative_to(_ROOT)} has {', '.join(known)}.")
    for name in names or known:
        if known[name].is_installed:
            continue
        print(f"installing the peer {name}", flush=True)
        try:
            known[name].install()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"THE PEER {name} IS NOT INSTALLED, and its tests are skipped: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
