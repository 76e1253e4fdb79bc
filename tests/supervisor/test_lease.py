"""The lease of a host as its own processes know it: a moment that only moves on, and only we can move."""

import mmap
import os
from collections.abc import Iterator

import pytest

from supervisor.clock import boottime
from supervisor.host.lease import Lease


@pytest.fixture
def lease() -> Iterator[Lease]:
    made = Lease(30.0)
    yield made
    os.close(made.descriptor)


def deadline(descriptor: int) -> float:
    """In seconds, as another process reads it."""
    return int.from_bytes(os.pread(descriptor, 8, 0), "little") / 1e9


def test_a_lease_is_given_up_until_it_is_renewed_and_when_two_thirds_of_it_are_over(lease: Lease) -> None:
    assert lease.is_given_up
    now = boottime()
    lease.renewed(now - 21.0)
    assert lease.is_given_up
    lease.renewed(now)
    assert not lease.is_given_up
    assert deadline(lease.descriptor) == pytest.approx(now + 20.0)


def test_a_renewal_whose_answer_comes_late_takes_nothing_from_a_later_one(lease: Lease) -> None:
    now = boottime()
    lease.renewed(now)
    lease.renewed(now - 25.0)
    assert not lease.is_given_up
    assert deadline(lease.descriptor) == pytest.approx(now + 20.0)


def test_another_process_can_read_the_deadline_and_not_change_it(lease: Lease) -> None:
    lease.renewed(1.0)
    with lease.to_read() as descriptor:
        assert deadline(descriptor) == pytest.approx(21.0)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(descriptor, bytes(8), 0)
        with pytest.raises(PermissionError):
            mmap.mmap(descriptor, 8)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_next_image_goes_on_with_the_same_memory_and_no_child_inherits_it(lease: Lease) -> None:
    assert not os.get_inheritable(lease.descriptor)
    lease.renewed(boottime())
    handed = lease.handed()
    assert os.get_inheritable(handed)
    following = Lease(30.0, handed)
    assert not os.get_inheritable(handed)
    assert not following.is_given_up
