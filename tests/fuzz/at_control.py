"""Requests at the control socket of a real service: any that the types allow, and any with bytes changed."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from hypothesis import strategies as st

from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.messages import Answer, Care, HandOver, Refused, Request, Scale, Stop
from tests.fuzz.mutations import mutated
from tests.raw_client import RawClient
from tests.service import Service
from tests.wire_strategies import messages
from tests.wire_values import frame, smallest, structs

# Texts that a service with a turn or two knows, and some that lie at the edge of what it may know.
WORDS = [
    "demo",
    "other",
    "demo/1",
    "demo/2",
    "demo/1#1",
    "hello",
    "x" * 200,
    "demo/" + "9" * 18,
    "30d",
    "[1]",
]
# They do what they are for, and end the service.
_ENDINGS = (Stop, HandOver)
# A thousand workers are a request that can be made, and no machine that runs tests should carry it out.
_SEATS_MAX = 3

_decoder: Decoder[Request] = Decoder(Request)


def requests() -> st.SearchStrategy[Any]:
    """Any request that a test may let be carried out."""
    kinds = [struct for struct in structs(Request) if struct not in _ENDINGS]
    return st.one_of(*(messages(struct, WORDS) for struct in kinds)).filter(is_harmless)


def is_harmless(request: Any) -> bool:
    """Whether carrying it out leaves the service, the machine and its files in peace."""
    match request:
        case Stop() | HandOver():
            return False
        case Scale():
            return (request.seats or 0) <= _SEATS_MAX and not request.per_cpu
        case Care(act="backup"):
            return request.file is None or not Path(request.file).is_absolute()
    return True


def changed_frames(seed: int) -> Iterator[bytes]:
    """Frames of requests with bytes changed, but for those that would do harm."""
    whole = [frame(smallest(struct)) for struct in structs(Request)]
    for body in mutated(Random(seed), whole):
        try:
            request = _decoder.decode(body)
        except WireError:
            yield body
        else:
            if is_harmless(request):
                yield body


class Storm:
    """What is sent, what was answered, and what it cost the service."""

    def __init__(self, service: Service) -> None:
        assert service.process is not None
        self._service = service
        self._pid = service.process.pid
        self._client = RawClient(service.places)

    def __enter__(self) -> "Storm":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(None, None, None)

    def ask(self, request: msgspec.Struct) -> Answer:
        return self._client.ask(encode(request))

    def send_changed(self, seed: int, count: int) -> None:
        """Each is refused by name, or answered like any request."""
        for body in islice(changed_frames(seed), count):
            answer = self._client.ask(body)
            assert isinstance(answer, Answer), answer
            if isinstance(answer, Refused):
                assert 0 < len(answer.error) < 1000
                assert answer.hint

    def check_alive(self) -> None:
        """The same process, and no defect of ours on the way."""
        assert self._service.status()["pid"] == self._pid
        (row,) = [row for row in self._service.show("metrics") if row["name"] == "hermes_contained_total"]
        contained = {each["labels"]["place"]: each["value"] for each in row["samples"] if each["value"]}
        assert contained == {}, self._service.log()[-4000:]

    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
