"""A journal that breaks or hangs without an error of the disk: the service says so, and nothing is lost."""

from collections.abc import Callable

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Submit
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until


def faulty(make_service: Callable[..., Service]) -> Service:
    service = make_service("tests.acceptance.faulty_journal", workers="count = 1")
    service.say("demo", "hello")
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    return service


def test_a_journal_that_breaks_ends_the_service_with_its_reason(make_service: Callable[..., Service]) -> None:
    service = faulty(make_service)
    (service.places.state / "break").touch()
    service.client().post(Submit("demo", "lost?", "key"))
    assert service.process is not None
    assert service.process.wait(DEADLINE_SECONDS) == 1
    (line,) = [line for line in service.log().splitlines() if "journal.failed" in line]
    assert "the journal's thread ended by an internal error (" in line
    assert "writer.py" in line, "where it was"
    assert "lost?" not in service.log()

    (service.places.state / "break").unlink()
    service.start()
    service.say("demo", "again", key="key")
    assert service.listen("demo").ending("demo/2").type == "turn.done"


@pytest.mark.timeout(90)
def test_a_commit_that_does_not_come_back_is_named_everywhere(make_service: Callable[..., Service]) -> None:
    service = faulty(make_service)
    (service.places.state / "hang").touch()
    service.client().post(Submit("demo", "slow", "slow"))
    (late,) = until(lambda: [each for each in service.status()["late"] if each["what"] == "journal"])
    assert "commit" in late["detail"]

    until(lambda: service.status()["state"] == "stuck")
    words = "a commit to the journal"
    assert words in service.hermesctl("status").stdout
    assert words in service.hermesctl("doctor").stdout

    def logged() -> int:
        return sum("journal.waits" in line and words in line for line in service.log().splitlines())

    until(logged)
    assert logged() == 1
    with pytest.raises(CommandError) as refused:
        service.say("other", "now")
    assert words in refused.value.fault

    (service.places.state / "hang").unlink()
    assert service.listen("demo").ending("demo/2").type == "turn.done"
    assert service.status()["state"] == "ready"
