"""The event loop of workers: uvloop's where the interpreter has it, else that of the standard library."""

import asyncio
from collections.abc import Callable

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    import uvloop
except ImportError:  # a foreign interpreter needs nothing installed in it
    new_event_loop = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop
