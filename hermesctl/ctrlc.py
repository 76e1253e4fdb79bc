"""Ctrl-C as a request: the first press wakes the waiting code, the second ends the command."""

import os
import signal
from types import FrameType, TracebackType


class CtrlC:
    """Counts presses; `wake` becomes readable at each, so that no exception can lose a frame."""

    def __init__(self) -> None:
        self.presses = 0
        self.wake, self._write = os.pipe()
        for end in (self.wake, self._write):
            os.set_blocking(end, False)

    def __enter__(self) -> "CtrlC":
        signal.signal(signal.SIGINT, self._note)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self.wake)
        os.close(self._write)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.presses += 1
        if self.presses > 1:
            raise KeyboardInterrupt
