"""The thread that writes the log of the stand-in; it writes what people say, as the original does."""

import logging
import queue
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path

_queued_file_handlers: list[logging.Handler] = []
_listeners: list[QueueListener] = []


def setup_logging(home: Path) -> None:
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logging.getLogger().addHandler(QueueHandler(records))
    _queued_file_handlers.append(logging.FileHandler(home / "agent.log"))
    _listeners.append(QueueListener(records, *_queued_file_handlers))
    _listeners[-1].start()


def _stop_queue_listener() -> None:
    while _listeners:
        _listeners.pop().stop()
