"""The files that a cell of namespaces sees and those that it does not, at every level."""

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ipc.service_messages import Sandbox
from tests.house_rules import ROOT
from tests.processes.asking import asked, refused
from tests.processes.stage import STAND_IN, Stage, play, script


@contextlib.contextmanager
def gone_afterwards(planted: Path) -> Iterator[None]:
    """An attack that succeeds shall leave nothing in the interpreter that runs the tests."""
    try:
        yield
    finally:
        planted.unlink(missing_ok=True)


@contextlib.contextmanager
def mounted_also(folder: Path, at: Path) -> Iterator[None]:
    """The folder at a second path."""
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", folder, at], capture_output=True).returncode:
        pytest.skip("only root can mount a folder at a second path")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def test_nothing_of_the_supervisor_is_within_reach(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path / "home", "pidns") as stage:
            stage.places.journal.write_text("the journal")
            await stage.start(script("subprocess.Popen(['sleep', '1000'])"), seat=1)
            state = stage.places.state
            found = await asked(
                stage,
                pids="[int(name) for name in os.listdir('/proc') if name.isdigit()]",
                signal=f"os.kill({os.getpid()}, 0)",
                journal=f"read('{state}/journal.db')",
                sockets=f"os.listdir('{stage.places.runtime}')",
                descriptors="[os.readlink(path) for path in map('/proc/self/fd/{}'.format, range(99))"
                " if os.path.lexists(path)]",
            )
            assert found["pids"] == ["did", [1]]
            assert found["signal"] == ["refused", "No such process"]
            assert found["journal"] == ["refused", "No such file or directory"]
            assert found["sockets"] == ["refused", "No such file or directory"]
            open_files = {name for name in found["descriptors"][1] if not name.startswith("/proc/")}
            assert open_files <= {"/dev/null", str(stage.log()), "(deleted)"}, open_files

    play(act())


def test_the_root_holds_what_the_list_says_and_only_the_own_folders_can_be_written(tmp_path: Path) -> None:
    async def act() -> None:
        (tmp_path / "secret").write_text("a secret")
        async with Stage(tmp_path / "home", "pidns") as stage:
            found = await asked(
                stage,
                root="sorted(os.listdir('/'))",
                etc="os.listdir('/etc')",
                dev="sorted(os.listdir('/dev'))",
                secret=f"read('{tmp_path}/secret')",
                shadow="read('/etc/shadow')",
                user="__import__('pwd').getpwuid(os.getuid()).pw_dir",
                home="os.environ['HOME']",
                run="os.listdir('/run')",
                shared="os.listdir('/dev/shm')",
                sys="os.listdir('/sys')",
                in_tmp="wrote('/tmp/x')",
                in_run="wrote('/run/x')",
                in_shm="wrote('/dev/shm/x')",
                in_null="wrote('/dev/null')",
                in_usr="wrote('/usr/x')",
                in_etc="wrote('/etc/x')",
                in_root="wrote('/x')",
                in_dev="wrote('/dev/x')",
                oom="wrote('/proc/self/oom_score_adj')",
                pattern="wrote('/proc/sys/kernel/core_pattern')",
            )
            system = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "usr"}
            # The interpreter and the packages of the tests lie in some of the others.
            places = {path.parts[1] for path in (Path(os.__file__), Path(__file__))}
            own = {"dev", "etc", "proc", "run", "tmp", "var", "workspace"}
            assert own <= set(found["root"][1]) <= own | system | places
            assert {"passwd", "group", "hosts", "ssl"} <= set(found["etc"][1])
            assert not {"shadow", "sudoers", "gshadow", "machine-id"} & set(found["etc"][1])
            nodes = {"null", "zero", "full", "random", "urandom", "tty"}
            links = {"fd", "stdin", "stdout", "stderr", "ptmx"}
            assert set(found["dev"][1]) == nodes | links | {"pts", "shm"}
            for missing in ("secret", "shadow", "sys"):
                assert found[missing] == ["refused", "No such file or directory"], missing
            assert found["run"] == found["shared"] == ["did", []]
            assert found["user"] == found["home"] == ["did", "/workspace"]
            for place in ("in_tmp", "in_run", "in_shm", "in_null"):
                assert found[place] == ["did", True], place
            for place in ("in_usr", "in_etc", "in_root", "in_dev", "oom", "pattern"):
                assert found[place] == ["refused", "Read-only file system"], place

    play(act())


def test_each_cell_has_a_tmp_of_its_own(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            first = await stage.start(
                script("open('/tmp/first', 'w').close(); open('/run/first', 'w').close()")
            )
            found = await asked(stage, tmp="os.path.exists('/tmp/first')", run="os.listdir('/run')")
            assert found == {"tmp": ["did", False], "run": ["did", []]}
            await stage.kill(first.incarnation)

    play(act())


def test_the_settings_show_more_and_links_lead_where_they_do_outside(tmp_path: Path) -> None:
    async def act() -> None:
        for name in ("read", "write", "beyond"):
            (tmp_path / name).mkdir()
            (tmp_path / name).chmod(0o777)  # agents of root are another user
            (tmp_path / name / "file").write_text(name)
        (tmp_path / "link").symlink_to("read")
        (tmp_path / "write" / "kept").mkdir()
        sandbox = Sandbox(
            read=(str(tmp_path / "link"), str(tmp_path / "write" / "kept")), write=(str(tmp_path / "write"),)
        )
        async with Stage(tmp_path / "home", "pidns", sandbox=sandbox) as stage:
            found = await asked(
                stage,
                link=f"read('{tmp_path}/link/file')",
                read=f"read('{tmp_path}/read/file')",
                into_read=f"wrote('{tmp_path}/read/new')",
                into_write=f"wrote('{tmp_path}/write/new')",
                into_kept=f"wrote('{tmp_path}/write/kept/new')",
                beyond=f"read('{tmp_path}/beyond/file')",
            )
            assert found["link"] == found["read"] == ["did", "read"]
            assert found["into_write"] == ["did", True]
            assert found["into_read"] == found["into_kept"] == ["refused", "Read-only file system"]
            assert found["beyond"] == ["refused", "No such file or directory"]
            assert (tmp_path / "write" / "new").read_text() == "x"

    play(act())


def test_a_link_in_a_writable_folder_shows_nothing_outside_of_it(tmp_path: Path) -> None:
    """An agent that may write there could have made it in an earlier turn."""

    async def act() -> None:
        (tmp_path / "write").mkdir()
        (tmp_path / "secret").mkdir()
        (tmp_path / "write" / "sub").symlink_to(tmp_path / "secret")
        sandbox = Sandbox(read=(str(tmp_path / "write" / "sub"),), write=(str(tmp_path / "write"),))
        async with Stage(tmp_path / "home", "pidns") as stage:
            stage.sandbox = sandbox
            died = await stage.fails_to_start()
            assert "leads out of" in str(died.reason)

    play(act())


@pytest.mark.parametrize("level", ["workspace", "home", "host"])
def test_h7_program_and_interpreter_cannot_be_written_at_any_level(tmp_path: Path, level: str) -> None:
    async def act() -> None:
        packages = Path(sysconfig.get_path("purelib"))
        sandbox = Sandbox(level=level, write=(str(packages),))  # type: ignore[arg-type]
        with gone_afterwards(packages / "planted.pth"), gone_afterwards(ROOT / "supervisor" / "planted.py"):
            await plant(sandbox, packages)

    async def plant(sandbox: Sandbox, packages: Path) -> None:
        async with Stage(tmp_path / "home", "pidns", sandbox=sandbox) as stage:
            found = await asked(
                stage,
                pth=f"wrote('{packages}/planted.pth')",
                prefix="wrote(sys.prefix + '/lib/planted.py')",
                module="wrote(os.path.dirname(sys.modules['worker'].__file__) + '/planted.py')",
                wire="wrote(os.path.dirname(sys.modules['ipc'].__file__) + '/planted.py')",
            )
            # A checkout lies in some folder of the host, which the level may show.
            beside = await asked(stage, supervisor=f"wrote('{ROOT}/supervisor/planted.py')")
            assert refused(beside["supervisor"])
            assert all(answer == ["refused", "Read-only file system"] for answer in found.values()), found

    play(act())


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an agent of another user can reach and write to: those of pytest are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("level", ["workspace", "home", "host"])
def test_h6_what_leads_to_the_environment_cannot_be_renamed_at_any_level(
    open_folder: Path, tmp_path: Path, level: str
) -> None:
    """An agent may write to the folder in which the environment lies, as in a checkout.

    The environment is one of the test's own: where the attack succeeds it moves nothing but that.
    """
    checkout = open_folder / "checkout"
    environment = checkout / "venv"
    made = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(made, check=True, capture_output=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    for folder in (checkout, *(path for path in checkout.rglob("*") if path.is_dir())):
        folder.chmod(0o777)  # not the rights of files, but the view shall keep the agent from it
    program = replace(
        STAND_IN,
        python=str(environment / "bin" / "python"),
        path=(*STAND_IN.path, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")),
    )

    async def act() -> None:
        sandbox = Sandbox(level=level, write=(str(open_folder),))  # type: ignore[arg-type]
        async with Stage(tmp_path / "home", "pidns", sandbox=sandbox, program=program) as stage:
            ways = {f"way{number}": folder for number, folder in enumerate((packages, *packages.parents))}
            ours = {way: folder for way, folder in ways.items() if folder.is_relative_to(open_folder)}
            found = await asked(
                stage,
                prefix="sys.prefix",
                beside=f"wrote('{checkout}/module.py')",
                **{way: f"os.rename('{folder}', '{folder}.was')" for way, folder in ours.items()},
            )
            assert found["prefix"] == ["did", str(environment)]
            assert found["beside"] == ["did", True]
            assert {way: found[way] for way in ours if not refused(found[way])} == {}
            assert packages.is_dir()

    play(act())


@pytest.mark.parametrize("level", ["workspace", "home", "host"])
def test_h8_h9_no_path_leads_to_the_state_or_to_a_key_at_any_level(open_folder: Path, level: str) -> None:
    tmp_path = open_folder

    async def act() -> None:
        key = tmp_path / "beside" / "api.key"
        key.parent.mkdir()
        key.parent.chmod(0o777)  # agents of root are another user
        key.write_text("sk-secret")
        (tmp_path / "link.key").symlink_to(key)
        sandbox = Sandbox(level=level, write=(str(tmp_path),))  # type: ignore[arg-type]
        home = tmp_path / "home"
        async with Stage(home, "pidns", sandbox=sandbox, key_files=(tmp_path / "link.key",)) as stage:
            stage.places.journal.write_text("the journal")
            await stage.start(script("subprocess.Popen(['sleep', '1000'])"), seat=1)
            found = await asked(
                stage,
                journal=f"read('{home}/journal.db')",
                through_root=f"read('/proc/self/root{home}/journal.db')",
                through_first=f"read('/proc/1/root{home}/journal.db')",
                into_state=f"wrote('{home}/journal.db')",
                state=f"os.listdir('{home}')",
                moved=f"os.rename('{home}', '{tmp_path}/elsewhere')",
                key=f"read('{key}')",
                key_by_link=f"read('{tmp_path}/link.key')",
                beside=f"wrote('{tmp_path}/beside/new')",
                folder_moved=f"os.rename('{tmp_path}/beside', '{tmp_path}/other')",
                key_moved=f"read('{tmp_path}/other/api.key')",
            )
            for answer in ("journal", "through_root", "through_first", "into_state", "moved"):
                assert refused(found[answer]), (answer, found[answer])
            assert set(found["state"][1]) <= {"run"}
            assert "secret" not in str(found)
            assert found["beside"] == ["did", True]

    play(act())


def test_h9_a_second_mount_of_the_state_folder_is_covered_too(tmp_path: Path) -> None:
    """The supervisor sees its state folder, and one above it, at two more paths; a cell at none."""

    async def act() -> None:
        home, alias, above = tmp_path / "state" / "home", tmp_path / "alias", tmp_path / "above"
        for folder in (home, alias, above):
            folder.mkdir(parents=True)
        with mounted_also(home, alias), mounted_also(tmp_path / "state", above):
            async with Stage(home, "pidns", sandbox=Sandbox(level="host")) as stage:
                stage.places.journal.write_text("the journal")
                found = await asked(
                    stage,
                    journal=f"read('{home}/journal.db')",
                    alias=f"read('{alias}/journal.db')",
                    above=f"read('{above}/home/journal.db')",
                    into_alias=f"wrote('{alias}/planted')",
                )
                assert all(refused(answer) for answer in found.values()), found

    play(act())
