"""Care for the journal through hermesctl, beside the running service and without it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Care, Table
from tests.fake_model import FakeModel
from tests.service import Service, lines
from tests.waiting import until


def answer(service: Service, session: str, count: int) -> None:
    for number in range(count):
        assert service.hermesctl("send", session, f"secret {number}").returncode == 0


@pytest.mark.parametrize("online", [True, False], ids=["running", "stopped"])
def test_check_stats_export_and_backup_work(service: Service, tmp_path: Path, online: bool) -> None:
    answer(service, "demo", 2)
    answer(service, "other", 1)
    if not online:
        service.stop()
    assert "sound" in service.hermesctl("journal", "check").stdout
    assert json.loads(service.hermesctl("journal", "check", "--json").stdout)["ok"] is True
    stats = json.loads(service.hermesctl("journal", "stats", "--json").stdout)
    assert (stats["rows"]["turns"], stats["rows"]["sessions"]) == (3, 2)
    assert "turns" in service.hermesctl("journal", "stats").stdout
    everything = lines(service.hermesctl("journal", "export").stdout)
    assert sum(row["table"] == "turns" for row in everything) == 3
    one = lines(service.hermesctl("journal", "export", "--session", "other").stdout)
    assert {row.get("session", "other") for row in one} == {"other"}
    made = service.hermesctl("journal", "backup", str(tmp_path / "copy.db"))
    assert made.returncode == 0, made.stderr
    again = service.hermesctl("journal", "backup", str(tmp_path / "copy.db"))
    assert (again.returncode, "exists already" in again.stderr) == (5, True)
    if online:
        service.stop()
    (service.home / "journal.db").write_bytes((tmp_path / "copy.db").read_bytes())
    service.start()
    answer(service, "demo", 1)
    assert [row["turn"] for row in service.show("turns", session="demo")] == ["demo/3", "demo/2", "demo/1"]


def test_care_of_a_home_without_a_journal_is_a_sentence(service: Service, tmp_path: Path) -> None:
    empty = Service(tmp_path / "empty", "")
    told = empty.hermesctl("journal", "stats")
    assert told.returncode == 5
    assert "there is no journal" in told.stderr
    assert empty.hermesctl("journal", "prune").returncode == 69


def test_prune_forgets_what_is_over_and_the_feed_begins_later(service: Service, model: FakeModel) -> None:
    answer(service, "demo", 3)
    service.say("demo", "[[silent]] hold")
    until(lambda: service.status()["running"] == 1)
    assert "takes a duration such as" in service.hermesctl("journal", "prune", "--older", "soon").stderr
    with pytest.raises(CommandError, match="soon cannot be used"):
        service.client().ask(Care("prune", older="soon"), Table)
    assert "nothing to forget" in service.hermesctl("journal", "prune").stdout
    assert "nothing to forget" in service.hermesctl("journal", "prune", "--older", "1h").stdout
    pruned = service.hermesctl("journal", "prune", "--keep-bytes", "1", "--json")
    assert json.loads(pruned.stdout)["turns"] == 3
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    assert [event.seq for event in listener.events] == [13, 14, 15]
    service.interrupt("demo")
    assert listener.ending("demo/4").type == "turn.interrupted"
    assert service.hermesctl("journal", "check").returncode == 0
    service.kill()
    service.start()
    answer(service, "demo", 1)
    assert service.show("turns")[0]["turn"] == "demo/5"


def test_the_journal_is_kept_small_by_default(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", journal='keep = "0.001s"')
    answer(service, "demo", 2)
    service.kill()
    service.start()
    until(lambda: "journal.pruned" in service.log())
    assert service.show("turns") == []
    assert service.show("sessions")[0]["seq"] == 8


def test_why_tells_the_story_of_a_turn_and_its_messages(service: Service) -> None:
    service.say("demo", "[[slow interval=0.02 count=500]] private words")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    second = service.say("demo", "stop that")
    listener.ending("demo/2")
    told = service.hermesctl("why", "demo/1")
    assert told.returncode == 0, told.stderr
    story = told.stdout.splitlines()
    for place, words in enumerate(
        (
            "arrived (text, interrupt)",
            "turn demo/1 opened to answer m_",
            "attempt 1 began on worker",
            f"turn demo/1 was interrupted by {second.message}",
            "turn demo/1 is interrupted",
        )
    ):
        assert words in story[place]
    assert len(story) == 5
    assert "private" not in told.stdout
    assert "word3" not in told.stdout
    assert "private" in service.hermesctl("why", "demo/1", "--text").stdout
    message = service.hermesctl("why", second.message)
    assert f"message {second.message} was taken by turn demo/2, which is done" in message.stdout
    rows = json.loads(service.hermesctl("why", second.message, "--json").stdout)
    assert [row["type"] for row in rows[1:]] == [
        "message.accepted",
        "turn.opened",
        "attempt.opened",
        "turn.done",
    ]
    assert "stop that" not in json.dumps(rows)


def test_why_of_a_waiting_message_and_of_nothing(service: Service) -> None:
    service.say("demo", "[[silent]] hold")
    waiting = service.say("demo", "later", busy="queue")
    told = service.hermesctl("why", waiting.message)
    assert f"message {waiting.message} is waiting" in told.stdout
    for unknown in ("m_nothing", "demo/99", "nothing"):
        missing = service.hermesctl("why", unknown)
        assert missing.returncode == 5
        assert f"there is no message or turn {unknown}" in missing.stderr
