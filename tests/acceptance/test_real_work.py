"""Ordinary work of a coding agent at the default level, by real commands of the shell tool."""

import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.sight import shell
from tests.fake_model import FakeModel
from tests.service import Service

_C = r"""
cat > a.c <<'END'
#include <stdio.h>
int main(void) { printf("compiled %d\n", 6 * 7); return 0; }
END
cc -O2 -o a a.c && ./a
"""
_SERVER = """
set -e
mkdir site && echo served > site/index.html
python3 -u -m http.server 0 --bind 127.0.0.1 --directory site > log 2>&1 &
python3 - <<'END'
import re, time, urllib.request
port = ""
while not port:
    port = "".join(re.findall(r"port (\\d+)", open("log").read()))
    time.sleep(0.05)
print(urllib.request.urlopen("http://127.0.0.1:%s/" % port).read().decode())
END
"""
_TMUX = """
export TERM=xterm
tmux new-session -d -s work 'echo from tmux > ~/said; tmux wait-for -S done; sleep 300'
tmux wait-for done
cat ~/said
tmux list-sessions
tmux kill-server
"""


@pytest.fixture
def service(make_service: Callable[..., Service], tmp_path: Path) -> Service:
    """A seat, and a folder of the host that agents may read."""
    (tmp_path / "shown").mkdir()
    return make_service(workers="count = 1", sandbox=f'read = ["{tmp_path}/shown"]')


def needs(program: str) -> None:
    if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip(f"{program} is not installed on this host")


def ran(service: Service, model: FakeModel, command: str) -> str:
    """What a command in a turn of its own has written."""
    asked = len(model.requests())
    service.say("work", shell(command, timeout_seconds=100))
    ending = service.listen("work").ending("work/1", 120)
    assert ending.type == "turn.done", ending.fields
    return str(model.requests()[asked + 1].messages[-1]["content"])


def test_a_repository_of_the_host_can_be_cloned(service: Service, model: FakeModel, tmp_path: Path) -> None:
    needs("git")
    origin = tmp_path / "shown" / "origin"
    for line in (
        ["init", "-q", "-b", "main", str(origin)],
        [
            "-C",
            str(origin),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ],
    ):
        subprocess.run(["git", *line], check=True, capture_output=True)
    told = ran(
        service,
        model,
        f"git clone -q {origin} copy && cd copy && echo new > file && git add file && "
        "git -c user.name=b -c user.email=b@c commit -q -m two && git log --format=%s",
    )
    assert "two\none" in told


def test_a_package_can_be_installed_into_an_environment_of_the_workspace(
    service: Service, model: FakeModel, tmp_path: Path
) -> None:
    """From a folder, so that no test needs a network; an index is found by the host's pip.conf."""
    wheel(tmp_path / "shown")
    told = ran(
        service,
        model,
        "python3 -m venv ~/env && ~/env/bin/python -m pip install -q --no-index "
        f"--find-links {tmp_path}/shown tinything && "
        "~/env/bin/python -c 'import tinything; print(tinything.WORD)'",
    )
    if "ensurepip is not" in told:
        pytest.skip("python3-venv is not installed on this host")
    assert "installed and imported" in told


def test_pip_finds_its_index_where_the_host_has_it(service: Service, model: FakeModel) -> None:
    told = ran(service, model, "test -e /etc/pip.conf && echo there; id -un")
    assert ("there" in told) == Path("/etc/pip.conf").exists()


def test_a_c_program_is_compiled_and_run(service: Service, model: FakeModel) -> None:
    needs("cc")
    assert "compiled 42" in ran(service, model, _C)


def test_node_runs(service: Service, model: FakeModel) -> None:
    needs("node")
    told = ran(service, model, 'node -e \'require("fs").writeFileSync("f", "from node")\' && cat f')
    assert "from node" in told


def test_tmux_has_a_server_of_its_own(service: Service, model: FakeModel) -> None:
    needs("tmux")
    told = ran(service, model, _TMUX)
    assert "from tmux" in told
    assert "work: 1 windows" in told


def test_a_web_server_answers_on_loopback(service: Service, model: FakeModel) -> None:
    assert "served" in ran(service, model, _SERVER)


def wheel(folder: Path) -> None:
    """A package of one module, as an index would give it."""
    info = "tinything-1.0.dist-info"
    files = {
        "tinything.py": 'WORD = "installed and imported"\n',
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(
            f"{name},,\n" for name in ("tinything.py", f"{info}/METADATA", f"{info}/WHEEL")
        ),
    }
    with zipfile.ZipFile(folder / "tinything-1.0-py3-none-any.whl", "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
