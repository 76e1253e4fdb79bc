"""Sends spans to an OpenTelemetry collector: the only module that uses its optional library."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from hermesctl.spans import Span

# One request to the collector. While it is away spans wait, up to the library's bound, then are dropped.
_EXPORT_SECONDS = 10
_FLUSH_MILLISECONDS = 5_000
_NANOSECONDS = 1_000_000_000


class Collector:
    """Sends in a thread of its own; the caller never waits."""

    def __init__(self, url: str, home: str) -> None:
        resource = Resource.create({"service.name": "hermes-supervisor", "hermes.home": home})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("hermesctl")

    def tell(self, span: Span, parent: object = None) -> None:
        """Sends the span and all within it."""
        told = self._tracer.start_span(
            span.name,
            context=set_span_in_context(parent) if parent is not None else None,  # type: ignore[arg-type]
            start_time=int(span.start * _NANOSECONDS),
            attributes=span.attributes,
        )
        if span.is_fault:
            told.set_status(Status(StatusCode.ERROR))
        for inner in span.inner:
            self.tell(inner, told)
        told.end(end_time=int(span.end * _NANOSECONDS))

    def close(self) -> None:
        """Sends the waiting spans, if the collector accepts them in time."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)
        self._provider.shutdown()
