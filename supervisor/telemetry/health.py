"""Health of the host: event loop lag, late work with its start, and free resources."""

from collections.abc import Callable, Sequence
from typing import Any

from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.core.state import State
from supervisor.engine import Engine
from supervisor.telemetry.host_resources import Gauges
from supervisor.telemetry.lag import Lag
from supervisor.telemetry.lateness import Lateness


class Health:
    """Measures from `open` to `close`."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        services: Callable[[], Sequence[dict[str, Any]]],
        lag_measured: Callable[[float], None],
        contain: Containment,
    ) -> None:
        state: State = engine.state
        self._lag = Lag(clock, lag_measured)
        self._gauges = Gauges(engine.post, contain)
        self._lateness = Lateness(state=state, clock=clock, engine=engine, lag=self._lag, services=services)

    def open(self) -> None:
        self._lag.open()
        self._gauges.open()

    def close(self) -> None:
        self._gauges.close()

    def late(self) -> list[dict[str, Any]]:
        """Return late work, with `what`, `since`, `seconds` and `detail`; the oldest first."""
        return self._lateness.rows()

    def lag_ms(self) -> float:
        """Return the 99th percentile of the event loop's lag over the last minute."""
        return round(self._lag.p99_seconds() * 1000, 1)
