"""A client follows a session at any host: each event once and in order, and text as it is streamed."""

from functools import partial

import psycopg
import pytest

from ipc.messages import Delta, Event, Subscribe, Subscribed
from tests.cutting_proxy import CuttingProxy
from tests.hosts.conftest import Make
from tests.postgres_cluster import Cluster
from tests.service import Listener
from tests.waiting import until

SLOW = "[[slow interval=0.05 count=30]]"
SLOWER = "[[slow interval=0.1 count=60]]"


def in_order(listener: Listener) -> bool:
    return [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))


def text_of(listener: Listener) -> str:
    """The text as a client puts it together: a delta continues at its offset."""
    text = ""
    for heard in listener.heard:
        if isinstance(heard, Delta):
            assert heard.offset <= len(text), "a piece is missing"
            text = text[: heard.offset] + heard.text
    return text


def has_text(listener: Listener, length: int) -> bool:
    return len(text_of(listener)) > length


def cut(cluster: Cluster, schema: str, life: int) -> None:
    """Cut every connection of one host, as a network does."""
    with psycopg.connect(cluster.url(schema)) as connection:
        connection.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE application_name = (
                   SELECT 'hermes ' || epoch || ' ' || left(md5(secret), 8) FROM lives WHERE epoch = %s)""",
            (life,),
        )


def test_events_and_text_of_one_host_reach_a_subscriber_of_another(make: Make) -> None:
    one, two = make("one"), make("two")
    near, far = one.listen("demo"), two.listen("demo")
    one.say("demo", SLOW)
    far.until(lambda: far.of_type("turn.done"))
    near.until(lambda: near.of_type("turn.done"))
    assert far.events == near.events
    assert in_order(far)
    assert text_of(far) == near.of_type("turn.done")[0].fields["text"] != ""
    kinds = [type(heard) for heard in far.heard]
    # A second and a half of text, in steps of 0.2 s at most.
    assert kinds.count(Delta) >= 7
    types = [heard.type if isinstance(heard, Event) else "delta" for heard in far.heard]
    assert types.index("attempt.opened") < types.index("delta"), "no text comes before its attempt"
    assert types[-1] == "turn.done", "no text comes after the end of its turn"


def test_who_subscribes_elsewhere_in_the_middle_of_a_turn_gets_its_whole_text(make: Make) -> None:
    one, two = make("one"), make("two")
    near = one.listen("demo")
    one.say("demo", SLOWER)
    near.until(lambda: len(near.words) > 20)
    far = two.listen("demo")
    ended = far.ending("demo/1")
    assert text_of(far) == ended.fields["text"]
    assert in_order(far)


def test_a_cut_connection_of_either_host_loses_no_event_and_no_text(
    make: Make, cluster: Cluster, schema: str
) -> None:
    one, two = make("one"), make("two")
    near, far = one.listen("demo"), two.listen("demo")
    one.say("demo", SLOWER)
    for life, length in ((2, 20), (1, 60), (2, 100)):
        far.until(partial(has_text, far, length))
        cut(cluster, schema, life)
    until(lambda: one.status()["state"] == "ready")
    one.say("demo", "behind it", busy="queue")
    far.ending("demo/2")
    near.ending("demo/2")
    assert far.events == near.events
    assert in_order(far)
    assert all(event.fields["text"] for event in far.of_type("turn.done"))


def test_events_while_a_host_is_cut_off_are_read_afterwards(
    make: Make, cluster: Cluster, proxy: CuttingProxy
) -> None:
    """Its connections are refused, and only the journal knows what it missed."""
    one, two = make("one"), make("two", proxy.port)
    far, near = two.listen("demo"), one.listen("demo")
    proxy.is_away = True
    proxy.drop()
    one.say("demo", "hello")
    near.ending("demo/1")
    proxy.is_away = False
    far.ending("demo/1")
    assert far.events == near.events
    assert in_order(far)


def test_who_follows_all_sessions_at_one_host_sees_those_of_the_other(make: Make) -> None:
    one, two = make("one"), make("two")
    everything = two.client()
    number = everything.post(Subscribe(None))
    everything.answer_to(number, Subscribed)
    near = {name: one.listen(name) for name in ("first", "second")}
    for name in near:
        one.say(name, "hello")
    told: dict[str, list[Event]] = {name: [] for name in near}

    def all_told() -> bool:
        arrived = everything.receive(0.2)
        if arrived is not None and isinstance(arrived[1], Event):
            told[arrived[1].session].append(arrived[1])
        return all(events and events[-1].type == "turn.done" for events in told.values())

    until(all_told)
    for name, listener in near.items():
        listener.ending(f"{name}/1")
        assert told[name] == listener.events


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_subscription_goes_on_when_its_session_moves_to_its_host(make: Make, way: str) -> None:
    one, two = make("one"), make("two")
    far = two.listen("demo")
    one.say("demo", SLOWER)
    far.until(partial(has_text, far, 30))
    getattr(one, way)()
    ended = far.ending("demo/1")
    assert ended.type == "turn.done"
    assert in_order(far)
    assert far.types().count("attempt.opened") == 2
    again = two.listen("demo")
    again.ending("demo/1")
    assert again.events == far.events
