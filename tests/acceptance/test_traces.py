"""Turns become traces at a collector, played here over real HTTP; the supervisor knows nothing of it."""

import http.server
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.acceptance.sight import shell
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until


class Collector(http.server.ThreadingHTTPServer):
    """Takes OTLP over HTTP and keeps every span by its name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.bodies: list[bytes] = []

    def spans(self) -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {}
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        facts = {each.key: str(each.value) for each in span.attributes}
                        facts |= {"trace": span.trace_id.hex(), "parent": span.parent_span_id.hex()}
                        facts |= {"id": span.span_id.hex()}
                        found.setdefault(span.name, []).append(facts)
        return found


class Answering(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_every_turn_that_ends_is_one_trace_across_a_restart(service: Service, collector: Collector) -> None:
    url = f"http://127.0.0.1:{collector.server_address[1]}/v1/traces"
    command = [sys.executable, "-m", "hermesctl", "--home", str(service.home), "traces", "--to", url]
    environment = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    traces = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert traces.stderr is not None
        assert "are sent to" in traces.stderr.readline()
        assert service.hermesctl("send", "demo", shell("echo the-secret-text")).returncode == 0
        until(lambda: "turn" in collector.spans())
        service.kill()
        service.start()
        assert service.hermesctl("send", "other", "the-secret-text").returncode == 0
        until(lambda: len(collector.spans().get("turn", [])) == 2)
        traces.send_signal(signal.SIGTERM)
        assert traces.wait(DEADLINE_SECONDS) == 0
    finally:
        traces.kill()
        traces.communicate()
    spans = collector.spans()
    first, second = spans["turn"]
    assert "demo/1" in first["hermes.turn"]
    assert "other/1" in second["hermes.turn"]
    assert first["trace"] != second["trace"]
    assert first["parent"] == ""
    assert [span["parent"] for span in spans["attempt 1"]] == [first["id"], second["id"]]
    (tool,) = spans["tool shell"]
    assert (tool["trace"], tool["parent"]) == (first["trace"], spans["attempt 1"][0]["id"])
    assert not any(b"the-secret-text" in body for body in collector.bodies)


def test_an_address_that_is_none_is_refused(service: Service) -> None:
    refused = service.hermesctl("traces", "--to", "collector:4318")
    assert refused.returncode == 2
    assert "http://127.0.0.1:4318/v1/traces" in refused.stderr
