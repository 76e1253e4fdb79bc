"""What other modules ask of the engine, as Protocols: they import this and not the engine.

Most only tell it what has happened (EventSink), many look at its state as well. The others name what one
module needs in addition.
"""

from collections.abc import Callable
from typing import Protocol

from supervisor.core.effects import Answer
from supervisor.core.events import Event, TextStreamed
from supervisor.core.state import State


class Trouble(Protocol):
    """Why nothing can be written now, and since when."""

    @property
    def error(self) -> str: ...
    @property
    def hint(self) -> str: ...
    @property
    def since(self) -> float: ...


class EventSink(Protocol):
    def post(self, event: Event) -> None: ...


class StatefulSink(EventSink, Protocol):
    @property
    def state(self) -> State: ...


class AnsweringSink(StatefulSink, Protocol):
    """`answer` is called after the commit of what was decided."""

    def post(self, event: Event, answer: Callable[[Answer], None] | None = None) -> None: ...


class RequestSink(AnsweringSink, Protocol):
    """For requests of clients, which are refused while nothing can be written."""

    @property
    def trouble(self) -> Trouble | None: ...


class InterruptSink(Protocol):
    """For interrupts, which are carried out before their commit when that does not come back."""

    @property
    def state(self) -> State: ...
    @property
    def trouble(self) -> Trouble | None: ...
    @property
    def commit_seconds(self) -> float: ...
    def post(self, event: Callable[[], Event], answer: Callable[[Answer], None] | None = None) -> None: ...
    def has_its_turn(self, incarnation: int) -> bool: ...


class FrameSink(StatefulSink, Protocol):
    """For frames of workers: `hold` keeps the place of streamed text until `nudge` has it decided."""

    def hold(self, words: Callable[[], TextStreamed]) -> None: ...
    def nudge(self) -> None: ...


class HaltingSink(AnsweringSink, Protocol):
    """For a restart in place: after `halt` nothing more is decided."""

    async def halt(self) -> None: ...


class CommitHealth(Protocol):
    @property
    def trouble(self) -> Trouble | None: ...
    @property
    def committing_since(self) -> float | None: ...
    @property
    def waiting_since(self) -> float | None: ...


class Progress(Protocol):
    """`moved` is called when the engine has been through its loop once."""

    def prove(self, moved: Callable[[], None]) -> None: ...
