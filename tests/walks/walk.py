"""A walk: the files somebody opens, in order, who follows one message through the code.

It is computed from a trace (trace.py) by these rules, the same for every walk:

1. **Only calls that act are followed.** A call acts when, in it or in what it calls, something leaves the
   function: a message, event, record, effect or row, a signal to a process, a request to a model, a word on
   the terminal (`ACTS`). Of a call that only checks, looks up or computes, the name at the call is read.
2. **A function is read once**, at the first call of it that acts.
3. **A stretch** is what one thread does until it waits: for the event loop, or in one of `WAITS`. Processes
   work side by side; a reader reads one stretch to its end, then the one that began next.
4. **A hop** leads to the file of a function that was not read yet. Within a stretch a call from a file into
   itself is no hop: the reader has that file open and goes on in the caller's frame.
5. **A return** is a hop to a file that was read before and left. To finish a function whose callee has
   returned is none; to come back for another function of the file is one.
6. **Left out** are files that a reader need not open to follow the message (`LEFT_OUT`) and calls, with all
   they call, that do not bring it on (`BESIDE`): what is done on schedule, acknowledgements, deferred work.

The files of calls that do not act are counted beside the walk, as consulted.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from tests.walks.trace import Entry

# Files, or folders of files, that are left out, and why.
LEFT_OUT = {
    "ipc/": "the wire: it delivers messages, as any library does",
    "supervisor/telemetry/": "counts and logs what was decided",
    "supervisor/containment.py": "wraps calls; an exception changes the walk, a call does not",
    "supervisor/journal/asking.py": "calls back: a journal in a file answers in place",
    "supervisor/clock.py": "the time",
    "supervisor/core/state.py": "data",
    "supervisor/core/events.py": "data",
    "supervisor/core/records.py": "data",
    "supervisor/core/effects.py": "data",
    "supervisor/core/decision.py": "data: the records and effects of one decision",
    "worker/log.py": "logs",
    "hermesctl/neutral.py": "guards the terminal's output streams",
}
# Functions that are called while a message is under way, and not for it.
BESIDE = {
    # on schedule
    "supervisor/app.py:App._take_pulse",
    "supervisor/care.py:Care._run",
    "supervisor/host/disk_space.py:DiskSpace._look_again",
    "supervisor/host/disk_space.py:DiskSpace._look_at_disk",
    "supervisor/host/disk_space.py:DiskSpace._looked",
    "supervisor/processes/usage.py:read",
    "supervisor/processes/watch.py:Watch._run",
    "supervisor/workers/router.py:Router._pulse_arrived",
    "stt_service/transcriber.py:Service._beat",
    "worker/lifecycle.py:Lifecycle._beat",
    # acknowledgements of frames
    "supervisor/workers/router.py:Router.acknowledge",
    "worker/outbox.py:Outbox.acknowledge",
    # deferred work of the zygote
    "worker/zygote.py:Zygote._rest",
}
# Functions in which a thread waits for another process or thread.
WAITS = {
    "ipc/sockets.py:BlockingSocket.receive",
    "supervisor/journal/group_commit.py:GroupCommit._gather",
    "worker/zygote.py:Zygote._wait",
}

# Functions by which something leaves the function that calls them.
ACTS = {
    # messages
    "ipc/codec.py:encode",
    "ipc/server.py:Server.send",
    "ipc/channel.py:Channel.send",
    "ipc/sockets.py:BlockingSocket.send",
    "ipc/sockets.py:LoopSocket.send",
    # events, and the records and effects that are decided
    "supervisor/event_queue.py:EventQueue.post",
    "supervisor/core/decision.py:Draft.tell",
    "supervisor/core/decision.py:Draft.note",
    "supervisor/core/decision.py:Draft.perform",
    # the journal
    "supervisor/journal/lock.py:take",
    "supervisor/journal/load.py:load",
    "supervisor/journal/group_commit.py:GroupCommit.put",
    "supervisor/journal/group_commit.py:_deliver",
    "supervisor/journal/writer.py:Writer._run",
    # processes
    "supervisor/processes/cells/pidns.py:PidNamespaceCell.strike",
    "supervisor/processes/orphans.py:sweep_orphans",
    "supervisor/services/child.py:Child.start",
    # sockets that are opened, and what systemd is told
    "ipc/server.py:Server.__init__",
    "supervisor/telemetry/systemd_notify.py:Notifier.ready",
    # clips
    "hermesctl/clip_upload.py:store",
    "stt_service/decoder_pool.py:_Decoder._send",
    "stt_service/decoder.py:_answer",
    "stt_service/whisper.py:FasterWhisper.transcribe_fast",
    "stt_service/whisper.py:FasterWhisper.transcribe_full",
    # the model, and the terminal
    "worker/model.py:Model._once",
    "hermesctl/answer_stream.py:AnswerPrinter._write",
}


@dataclass(slots=True)
class Hop:
    """A file, and the functions that are read there before the next hop."""

    file: str
    is_return: bool
    functions: list[str] = field(default_factory=list)


def walk(entries: Iterable[Entry], beside: Set[str] = frozenset()) -> list[Hop]:
    """`beside` are functions that do not bring this message on, as BESIDE are for every message."""
    hops: list[Hop] = []
    read: set[tuple[str, str]] = set()
    for stretch in _stretches(entries):
        is_first = True
        for entry in _acting(stretch, BESIDE | beside):
            if (entry.file, entry.function) in read or _is_left_out(entry):
                continue
            read.add((entry.file, entry.function))
            here = next((hop for hop in reversed(hops) if hop.file == entry.file), None)
            stays = entry.caller == entry.file and not is_first
            is_first = False
            if here is None or (here is not hops[-1] and not stays):
                here = Hop(entry.file, is_return=here is not None)
                hops.append(here)
            here.functions.append(entry.function)
    return hops


def files(hops: Sequence[Hop]) -> list[str]:
    """In the order of their first visit."""
    return list(dict.fromkeys(hop.file for hop in hops))


def consulted(entries: Iterable[Entry], hops: Sequence[Hop]) -> set[str]:
    """Files of which only calls that do not act were made."""
    return {entry.file for entry in entries if not _is_left_out(entry)} - {hop.file for hop in hops}


def returns(hops: Sequence[Hop]) -> int:
    return sum(hop.is_return for hop in hops)


def _is_left_out(entry: Entry) -> bool:
    return entry.file.startswith(tuple(LEFT_OUT))


def _acting(stretch: Sequence[Entry], beside: Set[str]) -> Iterator[Entry]:
    """The entries in whose calls something acts."""
    open_calls: list[tuple[Entry, int]] = []
    acting: set[int] = set()
    for number, entry in enumerate(stretch):
        while open_calls and open_calls[-1][0].depth >= entry.depth:
            open_calls.pop()
        open_calls.append((entry, number))
        if any(above.name in beside for above, _ in open_calls):
            continue
        if entry.name in ACTS:
            acting.update(number for _, number in open_calls)
    return (stretch[number] for number in sorted(acting))


def _stretches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """By the time of their beginning."""
    latest: dict[str, list[Entry]] = {}
    found: list[list[Entry]] = []
    for entry in sorted(entries):
        waits = entry.name in WAITS
        if entry.thread not in latest or not entry.caller or waits:
            latest[entry.thread] = []
            found.append(latest[entry.thread])
        latest[entry.thread].append(entry)
    yield from sorted(found, key=lambda stretch: stretch[0].at)
