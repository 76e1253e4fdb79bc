"""A zygote that dies at its start fails a test and never skips it; a kind that the host lacks is skipped."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes.missing_cells import skip_where_missing
from tests.processes.stage import STAND_IN, Stage

_DIES = replace(STAND_IN, python="/bin/false")


def test_a_zygote_that_dies_at_its_start_fails_the_test(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "sweep", program=_DIES):
            pass

    with pytest.raises(AssertionError, match="the zygote exited with status 1"):
        asyncio.run(act())


def test_a_kind_that_the_host_lacks_is_skipped_with_both_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unshare").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="no pid namespace can be made here: unshare: refused"):
        skip_where_missing("pidns", "unshare: refused")
