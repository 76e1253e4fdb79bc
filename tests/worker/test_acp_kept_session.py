"""The id of an ACP agent's own session, kept in the workspace: only what fits is loaded again."""

from pathlib import Path

import msgspec
import pytest

from ipc.messages import AgentSpec, Assign
from tests.worker.peer import assign
from worker.agents import acp_kept_session
from worker.agents.acp_kept_session import KeptSession

PROGRAM = ("opencode", "acp")
KEPT = KeptSession("theirs", PROGRAM, known_turns=2)


def turn(number: int = 3, *, agent: str = "coder", session: str = "s") -> Assign:
    made = assign("http://nowhere", turn=f"{session}/{number}")
    return msgspec.structs.replace(made, session=session, agent=AgentSpec(agent, "acp"))


def keep(folder: Path, kept: KeptSession) -> None:
    acp_kept_session.write(acp_kept_session.path(str(folder), turn()), kept)


def kept_file(folder: Path) -> Path:
    [file] = (folder / ".hermes").iterdir()
    return file


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    keep(tmp_path, KeptSession("older", PROGRAM))
    keep(tmp_path, KEPT)
    assert acp_kept_session.read(str(tmp_path), turn(), PROGRAM) == KEPT
    assert kept_file(tmp_path).suffix == ".json", "nothing else is left beside it"


@pytest.mark.parametrize(
    ("of", "program"),
    [
        (turn(), ("hermes", "acp")),
        (turn(), ("opencode",)),
        (turn(agent="reader"), PROGRAM),
        (turn(session="t"), PROGRAM),
        # The journal has fewer turns than the file says: it was restored, or the file is a forgery.
        (turn(2), PROGRAM),
    ],
)
def test_the_session_of_another_program_agent_or_session_is_not_loaded(
    tmp_path: Path, of: Assign, program: tuple[str, ...]
) -> None:
    keep(tmp_path, KEPT)
    assert acp_kept_session.read(str(tmp_path), of, program) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"id": 1, "program": []}', b"x" * 70_000])
def test_a_file_that_is_none_of_ours_is_no_session(tmp_path: Path, content: bytes) -> None:
    keep(tmp_path, KEPT)
    kept_file(tmp_path).write_bytes(content)
    assert acp_kept_session.read(str(tmp_path), turn(), PROGRAM) is None


def test_less_than_no_turns_cannot_be_known(tmp_path: Path) -> None:
    keep(tmp_path, KeptSession("theirs", PROGRAM, -1))
    assert acp_kept_session.read(str(tmp_path), turn(), PROGRAM) is None
    keep(tmp_path, KeptSession("theirs", PROGRAM, 0))
    assert acp_kept_session.read(str(tmp_path), turn(), PROGRAM) is not None


def test_a_workspace_that_cannot_be_written_costs_the_session_only(tmp_path: Path) -> None:
    (tmp_path / ".hermes").write_text("a file in the place of the folder")
    keep(tmp_path, KEPT)
    assert acp_kept_session.read(str(tmp_path), turn(), PROGRAM) is None
