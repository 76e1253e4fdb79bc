"""Interrupts of real work: whatever a tool or a worker does, it is gone at once, and what it did is known."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipc.messages import Event
from tests.acceptance.sight import alive, calls, descendants, named, shell, sleeper, state_of, worker_of
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.waiting import until

# From the word of a person to the next turn on a worker, on a machine that has other things to do.
AT_ONCE_SECONDS = 1.0
# Of a socket in /proc/net/unix, and in /proc/net/tcp.
LISTENS, TCP_LISTENS = 0x10000, "0A"


@pytest.fixture
def mark() -> str:
    """The name of what a test starts, unlike any other process here."""
    return f"work-{os.urandom(6).hex()}"


def begin(service: Service, text: str) -> Listener:
    service.say("demo", text)
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("tool.started"))
    return listener


def check_next_turn_is_at_once(service: Service, listener: Listener) -> Event:
    """Interrupts by a message; the closing event of the turn before."""
    said = service.say("demo", "are you there?")
    done = listener.ending("demo/2")
    assert (done.type, done.fields["text"]) == ("turn.done", "You said: are you there?")
    accepted = next(event for event in listener.events if event.seq == said.seq)
    opened = listener.of_type("attempt.opened")[-1]
    assert opened.at - accepted.at < AT_ONCE_SECONDS
    closed = listener.ending("demo/1")
    assert closed.type == "turn.interrupted"
    assert closed.fields["by"] == said.message
    assert closed.fields["killed"]["all_dead"]
    return closed


def test_a7_a_foreground_sleep_does_not_hold_the_turn(service: Service, mark: str) -> None:
    listener = begin(service, shell(f"exec -a {mark} sleep 120"))
    until(lambda: named(mark))
    check_next_turn_is_at_once(service, listener)
    assert named(mark) == set()


A8 = {
    "ignores_signals": "trap '' TERM INT HUP; while :; do {sleeper} & wait; done",
    "is_stopped": "{sleeper} & kill -STOP $$",
    "waits_for_a_reader": "{sleeper} & mkfifo /tmp/fifo; echo x > /tmp/fifo",
    "spins": "{sleeper} & while :; do :; done",
}


@pytest.mark.parametrize("victim", A8)
def test_a8_a_tool_that_cannot_be_asked_is_ended_all_the_same(
    service: Service, mark: str, victim: str
) -> None:
    command = A8[victim].format(sleeper=f"( {sleeper(mark)} )")
    listener = begin(service, shell(command))
    until(lambda: named(mark))
    family = descendants(worker_of(service, "demo"))
    if victim == "is_stopped":
        until(lambda: "T" in {state_of(pid) for pid in family})
    check_next_turn_is_at_once(service, listener)
    assert alive(family) == set()
    assert named(mark) == set()


def test_a8_a_stopped_worker_is_ended_all_the_same(service: Service, mark: str) -> None:
    listener = begin(service, shell(sleeper(mark)))
    until(lambda: named(mark))
    worker = worker_of(service, "demo")
    os.kill(worker, signal.SIGSTOP)
    until(lambda: state_of(worker) == "T")
    check_next_turn_is_at_once(service, listener)
    assert named(mark) | alive({worker}) == set()


def test_a8_a_worker_that_spins_in_c_with_the_interpreter_lock_is_ended_all_the_same(
    make_service: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
    shared: Path,
    mark: str,
) -> None:
    spinning = shared / "spinning"
    monkeypatch.setenv("HERMES_TEST_SPINNING", str(spinning))
    service = make_service(
        "tests.acceptance.spinning_supervisor", workers="count = 2", sandbox=f'write = ["{shared}"]'
    )
    listener = begin(service, shell(sleeper(mark)))
    until(lambda: named(mark))
    worker = worker_of(service, "demo")
    os.kill(worker, signal.SIGUSR1)
    until(spinning.exists)
    check_next_turn_is_at_once(service, listener)
    assert named(mark) | alive({worker}) == set()


FAMILY = """
{sleeper} &
( {sleeper} & ) &
setsid bash -c '{sleeper}' &
( setsid bash -c '( setsid bash -c "{sleeper}" </dev/null >/dev/null 2>&1 & )' & )
nohup bash -c '{sleeper}' >/dev/null 2>&1 &
disown -a
wait
"""


@pytest.mark.parametrize("cell", ["auto", "sweep"])
def test_a9_nothing_that_a_turn_started_lives_after_its_closing_event(
    make_service: Callable[..., Service], mark: str, cell: str
) -> None:
    service = make_service(workers=f'count = 2\ncell = "{cell}"')
    rounds = (
        [{"action": "start", "command": sleeper(mark)}],
        [{"command": FAMILY.format(sleeper=sleeper(mark)) + "sleep 120"}],
    )
    listener = begin(service, calls(*rounds))
    until(lambda: len(named(mark)) == 6)
    service.interrupt("demo")
    closed = listener.ending("demo/1")
    assert named(mark) == set()
    killed = closed.fields["killed"]
    assert killed["all_dead"]
    # Those six, the worker, and the shells between them.
    assert killed["processes"] >= 7
    assert 0 < killed["ms"] < 1000 * AT_ONCE_SECONDS
    assert cell in ("auto", killed["how"])


def test_a9_what_a_turn_started_ends_with_the_turn_also_when_it_is_done(service: Service, mark: str) -> None:
    background = {"action": "start", "command": sleeper(mark)}
    daemon = {"command": f"(setsid bash -c '{sleeper(mark)}' >/dev/null 2>&1 &)"}
    service.say("demo", calls([background, daemon]))
    listener = service.listen("demo")
    assert listener.ending("demo/1").type == "turn.done"
    assert named(mark) == set()


HOPPER = "import os\nwhile True:\n    if os.fork(): os._exit(0)"


def test_a9_what_forks_for_ever_ends_with_the_turn_too(service: Service, mark: str) -> None:
    hopper = f"exec -a {mark} '{sys.executable}' -c '{HOPPER}' & disown -a"
    service.say("demo", calls([{"command": hopper}]))
    listener = service.listen("demo")
    listener.ending("demo/1")
    until(lambda: named(mark) == set())
    assert service.hermesctl("send", "demo", "next").stdout == "You said: next\n"


def test_a16_the_next_turn_knows_what_was_said_and_done(
    service: Service, model: FakeModel, mark: str
) -> None:
    service.say("demo", "[[slow interval=0.02 count=2000]] talk")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    rounds = ([{"command": "echo kept-result"}], [{"command": sleeper(mark)}])
    service.say("demo", calls(*rounds))
    listener.until(lambda: len(listener.of_type("tool.started")) == 2)
    until(lambda: named(mark))
    service.say("demo", "what happened?")
    assert listener.ending("demo/3").type == "turn.done"
    messages = model.requests()[-1].messages
    answers = {1: "assistant", 2: "assistant tool tool assistant"}
    roles = f"system user {answers[1]} user {answers[2]} user"
    assert " ".join(message["role"] for message in messages) == roles
    partial = listener.ending("demo/1").fields["partial"]
    assert partial.startswith("word0 word1 ")
    assert messages[2]["content"] == f"{partial.strip()}\n[cut off by an interrupt]"
    assert messages[5]["content"] == "[exit status 0]\nkept-result\n"
    assert messages[6]["content"].startswith("outcome unknown")
    assert messages[7]["content"] == "[cut off by an interrupt]"
    made = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert made == results
    assert len(set(made)) == 2


# Prints what comes of a connection to each socket that is named.
KNOCK = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect(path)
            print("open")
        except OSError as error:
            print(type(error).__name__)
"""


def listening(pids: set[int]) -> set[str]:
    """Every socket on which one of these processes listens: a path, an abstract name, or a TCP address."""
    found: set[str] = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            found |= _listens(Path(f"/proc/{pid}"))
    return found


def _listens(process: Path) -> set[str]:
    inodes, found = set(), set()
    for descriptor in os.listdir(process / "fd"):
        with contextlib.suppress(FileNotFoundError):
            inodes.add(os.readlink(process / "fd" / descriptor).removeprefix("socket:[").removesuffix("]"))
    for line in (process / "net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *name = line.split()
        if inode in inodes and int(flags, 16) & LISTENS:
            found.add(" ".join(name))
    for kind in ("tcp", "tcp6"):
        for line in (process / "net" / kind).read_text().splitlines()[1:]:
            _, address, _, state, _, _, _, _, _, inode, *_ = line.split()
            if inode in inodes and state == TCP_LISTENS:
                found.add(address)
    return found


def open_doors(service: Service) -> list[str]:
    """All but the ends of links to workers: each is connected already, holds one connection, has no name."""
    assert service.process is not None
    found = listening(descendants(service.process.pid))
    link = service.places.runtime / "line.sock"
    return sorted(found if link.exists() else found - {str(link)})


def check_refused(doors: list[str]) -> None:
    """Another user is refused at every door, which our own user finds open."""
    line = ["/usr/bin/env", "python3", "-c", KNOCK, *doors]
    own = subprocess.run(line, capture_output=True, text=True, timeout=30)
    assert own.stdout.split() == ["open"] * len(doors), own.stderr
    other = subprocess.run(line, user=65534, group=65534, capture_output=True, text=True, timeout=30)
    assert other.stdout.split() == ["PermissionError"] * len(doors), other.stderr


@pytest.fixture
def at_a_long_path(tmp_path: Path, model: FakeModel, shared: Path) -> Iterator[Service]:
    """Its sockets lie in a folder that every user can come near: that folder and they alone must refuse."""
    settings = settings_for(model, workers="count = 2", sandbox=f'write = ["{shared}"]')
    with Service(tmp_path / ("long" * 30), settings) as service:
        assert service.home not in service.places.runtime.parents
        yield service


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try a door as another user")
def test_a17_every_door_is_closed_to_others_while_draining_too(
    at_a_long_path: Service, model: FakeModel, shared: Path
) -> None:
    """The agent of the running turn tries them itself, when the service drains."""
    service, gate = at_a_long_path, shared / "open"
    doors = sorted([service.places.control, service.places.gateway, service.places.services])
    # A zygote rehearses, and a worker that is prepared stretches, with a socket of its own for a moment.
    until(lambda: open_doors(service) == doors)
    assert stat.S_IMODE(service.places.runtime.stat().st_mode) == 0o700
    assert {stat.S_IMODE(Path(door).stat().st_mode) for door in doors} == {0o600}
    check_refused(doors)
    knock = f"'{sys.executable}' -c '{KNOCK}' {' '.join(doors)}"
    listener = begin(service, shell(f"until [ -e {gate} ]; do sleep 0.05; done; {knock}"))
    assert service.hermesctl("drain").returncode == 0
    assert service.status()["draining"]
    until(lambda: open_doors(service) == doors)
    check_refused(doors)
    gate.touch()
    assert listener.ending("demo/1").type == "turn.done"
    if "namespaces" in service.status()["cell"]:
        (result,) = [m["content"] for m in model.requests()[-1].messages if m["role"] == "tool"]
        assert result == "[exit status 0]\n" + "FileNotFoundError\n" * len(doors)
    # It drains still, and nobody has had a part in it.
    assert service.status()["draining"]
    assert len(service.show("turns")) == 1


def test_a17_an_agent_reaches_neither_the_doors_nor_the_secrets(
    make_service: Callable[..., Service], model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_TEST_SECRET", "sk-of-the-host")
    service = make_service(workers="count = 2")
    if "namespaces" not in service.status()["cell"]:
        pytest.skip("only a cell with namespaces hides anything")
    knock = f"'{sys.executable}' -c '{KNOCK}' {service.places.control}"
    commands = [
        knock,
        f"ls {service.places.runtime}",
        f"cat {service.places.journal}",
        f"cat {service.home}/hermes.toml",
        "cat /proc/$PPID/environ | tr '\\0' '\\n'; cat /proc/1/environ | tr '\\0' '\\n'; env",
        "head -c 1 /proc/$PPID/mem",
    ]
    service.say("demo", calls([{"command": command} for command in commands]))
    assert service.listen("demo").ending("demo/1").type == "turn.done"
    results = [m["content"] for m in model.requests()[-1].messages if m["role"] == "tool"]
    assert results[0] == "[exit status 0]\nFileNotFoundError\n"
    assert results[1].startswith("[exit status 2]")
    assert all(result.startswith("[exit status 1]") for result in (results[2], results[3]))
    assert "PATH=" in results[4]
    assert "sk-of-the-host" not in results[4]
    assert "Permission denied" in results[5]


def test_the_output_of_a_running_tool_is_seen_by_whoever_sent_the_message(service: Service) -> None:
    sent = service.hermesctl("send", "demo", shell("echo from the tool; exit 3"))
    assert sent.stdout == "Done.\n"
    assert "· from the tool" in sent.stderr


def test_a_tool_that_still_writes_is_not_taken_for_stuck(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", turns='silence = "2s"')
    service.say("demo", shell("for n in $(seq 20); do echo $n; sleep 0.2; done"))
    listener = service.listen("demo")
    assert listener.ending("demo/1").type == "turn.done"
    assert listener.of_type("tool.finished")[0].fields["ms"] > 3000
    assert not listener.of_type("attempt.lost")
