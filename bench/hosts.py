"""Several hosts on one PostgreSQL server: what a message, an interrupt and the loss of a host cost.

Real supervisors and a real server in a temporary folder, which makes commits durable (`fsync = on`). The raw
side commits rows of the same bytes to the same server, or sends a NOTIFY from one connection to another; both
sides take turns within one run. The time of a takeover depends on the lease, so that is its limit. The
replica that is promoted is synchronous, and its primary has just ended.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from bench.accept import receive
from bench.goals import Outcome, rounds_asked, tell
from bench.journal import Senders
from bench.limits import committing
from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Done, Interrupt, Submit
from ipc.sockets import Wire
from tests import postgres_cluster
from tests.fake_model import FakeModel
from tests.postgres_cluster import USER, Cluster
from tests.service import Listener, Service, settings_for
from tests.waiting import until

TITLE = "Several hosts on one PostgreSQL server, beside raw commits and NOTIFY on the same server"
ROUNDS = 100
_WARM_UP = 10
_MANY = 64
_LEASE_SECONDS = 3.0
# Losing a host takes seconds.
_LOSSES_SHARE, _PROMOTIONS_SHARE = 20, 50
_HOLD, _STALL = "[[silent]] hold", "[[stall tokens=1]]"
_TEXT = "What would it take to get this done by the end of the day? " * 4
_ONE_GOAL, _MANY_GOAL, _ELSEWHERE_GOAL = 2.0, 5.0, 2.5
_HOPS = 5
_TAKEN_AFTER_SECONDS = _STOPPED_SECONDS_MAX = 1.0
_PROMOTED_SECONDS_MAX = 2.0


class Hosts:
    """Supervisors by their names, each with two seats."""

    def __init__(self, folder: Path, model: FakeModel, url: str, made: ExitStack) -> None:
        self._folder = folder
        self._model = model
        self._url = url
        self._made = made

    def start(self, name: str) -> Service:
        tables = {
            "workers": "count = 2\nspares = 0",
            "turns": "queue_max = 1000000\nwaiting_max = 100000",
            "journal": f'url = "{self._url}"',
            "hosts": f'name = "{name}"\nlease = "{_LEASE_SECONDS}s"',
        }
        return self._made.enter_context(Service(self._folder / name, settings_for(self._model, **tables)))


class Raw:
    """The server without us: a row a commit, and a hop of NOTIFY."""

    def __init__(self, url: str) -> None:
        self._writing = psycopg.connect(url, autocommit=True)
        self._listening = psycopg.connect(url, autocommit=True)
        self._writing.execute("CREATE TABLE raw_message (id bigserial PRIMARY KEY, key text, text text)")
        self._listening.execute("LISTEN raw_hop")

    def commit(self) -> float:
        began = time.perf_counter()
        self._writing.execute("INSERT INTO raw_message (key, text) VALUES ('key', %s)", (_TEXT,))
        return time.perf_counter() - began

    def hop(self) -> float:
        """A NOTIFY from one connection to another."""
        began = time.perf_counter()
        self._writing.execute("NOTIFY raw_hop, 'a session and a number'")
        assert next(iter(self._listening.notifies(timeout=10, stop_after=1)), None) is not None
        return time.perf_counter() - began

    def close(self) -> None:
        self._writing.close()
        self._listening.close()


class Bare:
    """A client of a process that commits a row and answers: a hop, that commit and a hop."""

    def __init__(self, wire: Wire, path: str) -> None:
        self._socket = wire.blocking(path, "bench-bare")

    def round(self) -> float:
        began = time.perf_counter()
        self._socket.send([b"key", _TEXT.encode()])
        receive(self._socket)
        return time.perf_counter() - began


def measure(rounds: int) -> list[Outcome]:
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_cluster.running(fsync="on") as cluster,
        FakeModel() as model,
        closing(Raw(cluster.url())) as raw,
    ):
        with _hosts(Path(folder, "one"), model, cluster) as hosts:
            outcomes = [*_of_messages(hosts.start("alpha"), raw, cluster.url(), rounds, "")]
        with _hosts(Path(folder, "two"), model, cluster) as hosts:
            alpha, beta = hosts.start("alpha"), hosts.start("beta")
            until(lambda: _is_known(beta, "alpha"))
            outcomes += [_elsewhere(alpha, beta, rounds), _interrupts(alpha, beta, raw, rounds)]
        with _hosts(Path(folder, "lost"), model, cluster) as hosts:
            outcomes += _of_losses(hosts, rounds // _LOSSES_SHARE + 1)
        # The last one: from now on every commit waits for the replica.
        with postgres_cluster.replica_of(cluster), _hosts(Path(folder, "safe"), model, cluster) as hosts:
            how = ", with a synchronous replica"
            outcomes += _of_messages(hosts.start("alpha"), raw, cluster.url(), rounds, how)
    return [*outcomes, _promotion(rounds // _PROMOTIONS_SHARE + 1)]


@contextmanager
def _hosts(folder: Path, model: FakeModel, cluster: Cluster) -> Iterator[Hosts]:
    """Hosts with a journal of their own; they are stopped at the end."""
    folder.mkdir()
    with ExitStack() as made:
        yield Hosts(folder, model, cluster.url(cluster.new_schema()), made)


def _of_messages(host: Service, raw: Raw, url: str, rounds: int, how: str) -> Iterator[Outcome]:
    """Both seats are taken: everything after that waits, and accepting is all that is measured."""
    for name in ("first", "second"):
        _begin(host, f"taken-{name}")
    with closing(Wire()) as wire, committing(host.home / "bare.sock", url) as path:
        one, many = Senders(wire, host.places.control, 1), Senders(wire, host.places.control, _MANY)
        bare = Bare(wire, path)
        alone = [(one.round(), raw.commit(), bare.round()) for _ in range(rounds + _WARM_UP)][_WARM_UP:]
        together = [(many.round(), raw.commit()) for _ in range(rounds + _WARM_UP)][_WARM_UP:]
    ours, commits, hops = (_ms([row[each] for row in alone]) for each in range(3))
    yield Outcome(f"1 sender: accepted, beside a commit{how}", ours, commits, "ms", "at most", _ONE_GOAL)
    yield Outcome(
        f"1 sender: accepted, beside a hop, a commit and a hop{how}", ours, hops, "ms", "at most", None
    )
    rates = [_MANY / row[0] for row in together], [1 / row[1] for row in together]
    what = f"{_MANY} senders, beside one commit a message{how}"
    yield Outcome(what, *rates, "messages/s", "at least", _MANY_GOAL)


def _elsewhere(owner: Service, other: Service, rounds: int) -> Outcome:
    """A session with an open turn, which its owner has; the messages wait."""
    _begin(owner, "shared")
    with _client(owner) as near, _client(other) as far:
        times = [(_say(far, "shared"), _say(near, "shared")) for _ in range(rounds + _WARM_UP)][_WARM_UP:]
    return Outcome(
        "said elsewhere, beside said at the owner",
        _ms([row[0] for row in times]),
        _ms([row[1] for row in times]),
        "ms",
        "at most",
        _ELSEWHERE_GOAL,
    )


def _interrupts(owner: Service, other: Service, raw: Raw, rounds: int) -> Outcome:
    """From the request to the answer with the proof."""
    far_times: list[float] = []
    limits: list[float] = []
    with _client(owner) as near, _client(other) as far:
        for number in range(max(3, rounds // 5)):
            _run(owner, f"near-{number}")
            local = _interrupt(near, f"near-{number}")
            _run(owner, f"far-{number}")
            far_times.append(_interrupt(far, f"far-{number}"))
            # Once, as a request passes: a hop right behind another finds every process awake.
            _rest(owner)
            limits.append(local + _HOPS * raw.hop())
    what = f"interrupt from elsewhere, beside one at the owner and {_HOPS} hops of NOTIFY"
    return Outcome(what, _ms(far_times), _ms(limits), "ms", "at most", 1)


def _of_losses(hosts: Hosts, losses: int) -> Iterator[Outcome]:
    """From the end of a host to the next attempt of its turn at another, as a client is told there."""
    killed: list[float] = []
    stopped: list[float] = []
    survivor = hosts.start("survivor")
    for number in range(losses):
        for times, end in ((killed, Service.kill), (stopped, Service.stop)):
            host, session = hosts.start(f"lost-{number}-{end.__name__}"), f"{end.__name__}-{number}"
            until(lambda name=host.home.name: _is_known(survivor, name))  # type: ignore[misc]
            _begin(host, session)
            listener = survivor.listen(session)
            listener.until(lambda told=listener: _attempts(told) == 1)  # type: ignore[misc]
            times.append(_lost(host, end, listener))
            survivor.interrupt(session)
    limit = [(_LEASE_SECONDS + _TAKEN_AFTER_SECONDS) * 1000]
    what = f"a host is killed → its turn runs elsewhere, beside the lease of {_LEASE_SECONDS:g} s and 1 s"
    yield Outcome(what, _ms(killed), limit, "ms", "at most", 1)
    yield Outcome(
        "a host has stopped → its turn runs elsewhere, beside 1 s",
        _ms(stopped),
        [_STOPPED_SECONDS_MAX * 1000],
        "ms",
        "at most",
        1,
    )


def _lost(host: Service, end: Callable[[Service], object], listener: Listener) -> float:
    """Seconds from the moment when the process is gone; of a kill, from the kill."""
    began = time.perf_counter()
    end(host)
    ended = began if end is Service.kill else time.perf_counter()
    listener.until(lambda: _attempts(listener) == 2)
    return time.perf_counter() - ended


def _promotion(times: int) -> Outcome:
    spent = [_promoted() for _ in range(times)]
    what = "a synchronous replica is promoted → the next message is accepted, beside 2 s"
    return Outcome(what, _ms(spent), [_PROMOTED_SECONDS_MAX * 1000], "ms", "at most", 1)


def _promoted() -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_cluster.running(fsync="on") as primary,
        postgres_cluster.replica_of(primary) as replica,
        FakeModel() as model,
        ExitStack() as made,
    ):
        host = Hosts(Path(folder), model, _both(primary, replica), made).start("alpha")
        _begin(host, "open")
        primary.stop("immediate")
        began = time.perf_counter()
        replica.promote()
        key = os.urandom(8).hex()
        with _client(host) as client:
            until(lambda: _is_accepted(client, key))
        return time.perf_counter() - began


def _both(primary: Cluster, replica: Cluster) -> str:
    ports = f"{primary.port},{replica.port}"
    return f"postgresql://{USER}@/postgres?host=127.0.0.1,127.0.0.1&port={ports}"


def _begin(host: Service, session: str) -> None:
    """A turn that holds its seat until it is interrupted."""
    host.say(session, _HOLD)
    listener = host.listen(session)
    listener.until(lambda: _attempts(listener) == 1)


def _run(host: Service, session: str) -> None:
    """A turn that has begun to answer."""
    _rest(host)
    host.say(session, _STALL)
    listener = host.listen(session)
    listener.until(lambda: listener.words)


def _rest(host: Service) -> None:
    """Wait until no worker starts or ends."""
    until(lambda: {row["state"] for row in host.show("workers")} <= {"idle", "busy"})


def _attempts(listener: Listener) -> int:
    return len(listener.of_type("attempt.opened"))


def _say(client: Client, session: str) -> float:
    request = Submit(session, _TEXT, os.urandom(8).hex(), busy="queue")
    began = time.perf_counter()
    client.ask(request, Accepted)
    return time.perf_counter() - began


def _interrupt(client: Client, session: str) -> float:
    began = time.perf_counter()
    client.ask(Interrupt(session, "bench"), Done)
    return time.perf_counter() - began


def _is_accepted(client: Client, key: str) -> bool:
    try:
        client.ask(Submit("after", _TEXT, key, busy="queue"), Accepted)
    except CommandError:
        return False
    return True


def _is_known(host: Service, name: str) -> bool:
    return any(row["name"] == name for row in host.status()["other_hosts"])


@contextmanager
def _client(service: Service) -> Iterator[Client]:
    client = Client(service.places)
    try:
        yield client
    finally:
        client.close()


def _ms(seconds: list[float]) -> list[float]:
    return [each * 1000 for each in seconds]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
