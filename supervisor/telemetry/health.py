"""How the host is: how late its loop runs, what is late and since when, and what it has left."""

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
        """What is late, with `what`, `since`, `seconds` and `detail`; the oldest first."""
        return self._lateness.rows()

    def lag_ms(self) -> float:
        """What all but one in a hundred looks at the loop in the last minute did not exceed."""
        return round(self._lag.p99_seconds() * 1000, 1)
