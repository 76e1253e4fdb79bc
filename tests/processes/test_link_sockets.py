"""The sockets of the next link: made ahead, one set at most, and closed."""

import asyncio
import os
import resource
from pathlib import Path

import pytest

from supervisor.processes.link_sockets import NextLink


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_next_link_is_made_ahead_and_none_is_left_after_the_end(tmp_path: Path) -> None:
    async def act() -> None:
        before = _open_descriptors()
        links = NextLink(str(tmp_path))
        first = links.take()
        # Two of them lead to each other.
        assert len({each.fileno() for each in first}) == 4
        await asyncio.sleep(0)
        assert _open_descriptors() == before + 8
        second = links.take()
        assert _open_descriptors() == before + 8
        assert not {each.fileno() for each in first} & {each.fileno() for each in second}
        await asyncio.sleep(0)
        assert os.listdir(tmp_path) == []
        for link in (first, second):
            link.frames.send(b"x")
            link.close()
        assert _open_descriptors() == before + 4
        links.close()
        assert _open_descriptors() == before

    asyncio.run(act())


def test_none_is_made_ahead_after_the_end(tmp_path: Path) -> None:
    async def act() -> None:
        before = _open_descriptors()
        links = NextLink(str(tmp_path))
        links.take().close()
        links.close()
        await asyncio.sleep(0)
        assert _open_descriptors() == before

    asyncio.run(act())


def test_sockets_that_cannot_be_made_ahead_are_asked_for_again_and_fail_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "folder"

    async def act() -> None:
        folder.mkdir()
        links = NextLink(str(folder))
        links.take().close()
        folder.rmdir()
        await asyncio.sleep(0)
        with pytest.raises(FileNotFoundError):
            links.take()
        folder.mkdir()
        await asyncio.sleep(0)
        links.take().close()
        links.close()

    asyncio.run(act())


def test_half_a_link_is_closed_when_the_other_half_cannot_be_made(tmp_path: Path) -> None:
    async def act() -> None:
        before = _open_descriptors()
        links = NextLink(str(tmp_path))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Each half takes two descriptors: with two free ones the second half finds none.
        free = [os.dup(0) for _ in range(3)]
        for each in free:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], hard))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                links.take()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert _open_descriptors() == before

    asyncio.run(act())
