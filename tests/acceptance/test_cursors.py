"""Clients that have a name: the service remembers how far each has read, whoever is killed in between."""

import json
from functools import partial

from hermesctl.client import Client
from ipc.messages import Done, Event, Refused, Seen, Subscribe, Subscribed
from tests.checker import Sight, check_quiet
from tests.hermesctl.hand import Running
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until


def test_d12_a_named_client_goes_on_behind_what_it_acknowledged_across_kills(
    service: Service,
) -> None:
    """Each life reads a little and is killed: whoever drops what he has by its seq has each event once."""
    sight = Sight("demo")
    kept: dict[int, Event] = {}
    for life in range(1, 4):
        service.say("demo", f"number {life}", key=f"k{life}")
        reader = service.client()
        number = reader.post(Subscribe("demo", cursor="bridge"))
        following = reader.answer_to(number, Subscribed)
        assert following.after == (2 * (life - 1) if life > 1 else 0)
        heard = read_until_done(reader, number, f"demo/{life}")
        assert [event.seq for event in heard] == list(range(following.after + 1, heard[-1].seq + 1))
        kept |= {event.seq: event for event in heard}
        reader.ask(Seen("bridge", "demo", 2 * life), Done)
        assert reader.ask(Seen("bridge", "demo", 1), Done).note == f"cursor bridge stands at {2 * life}"
        service.kill()
        service.start()
    for seq in sorted(kept):
        sight.saw(kept[seq])
    assert [row["seq"] for row in service.show("cursors")] == [6]
    service.stop()
    check_quiet(service.places.journal, [sight])


def test_d12_tail_prints_on_where_it_left_off(service: Service) -> None:
    for life in (1, 2):
        service.say("demo", f"number {life}")
        service.listen("demo").ending(f"demo/{life}")
        with Running(service.home, "tail", "demo", "--json", "--cursor", "bridge") as tail:
            until(partial(stands_at, service, 4 * life))
            printed = tail.wait_for('"turn.done"')
        seqs = [json.loads(line)["seq"] for line in printed.splitlines()]
        assert seqs == list(range(4 * life - 3, 4 * life + 1))
        service.kill()
        service.start()


def stands_at(service: Service, seq: int) -> bool:
    return [row["seq"] for row in service.show("cursors")] == [seq]


def read_until_done(client: Client, number: int, turn: str) -> list[Event]:
    """The events of a follow up to the answer of a turn."""
    events: list[Event] = []

    def is_there() -> bool:
        arrived = client.receive(0.2)
        if arrived is not None and arrived[0] == number and isinstance(arrived[1], Event):
            events.append(arrived[1])
        return any(event.type == "turn.done" and event.fields["turn"] == turn for event in events)

    until(is_there)
    return events


def test_a_cursor_is_refused_where_it_has_no_meaning(service: Service) -> None:
    client = service.client()

    def refused(request: Subscribe | Seen) -> str:
        number = client.post(request)
        answer = client.receive(DEADLINE_SECONDS)
        while answer is None or answer[0] != number:
            answer = client.receive(DEADLINE_SECONDS)
        assert isinstance(answer[1], Refused)
        return answer[1].error

    service.say("demo", "hello")
    assert "within one session" in refused(Subscribe(None, cursor="bridge"))
    assert "a cursor's name" in refused(Subscribe("demo", cursor=" "))
    assert "a cursor's name" in refused(Seen("", "demo", 1))
    assert "number 99 cannot have been read" in refused(Seen("bridge", "demo", 99))
    assert service.show("cursors") == []
