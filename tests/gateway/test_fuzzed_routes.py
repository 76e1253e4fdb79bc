"""Requests made up from the description of the API: none is answered by 500 or hangs, the service lives."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from gateway.errors import CODES
from gateway.openapi import description
from gateway.routes import Route, routes
from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.test_messages import ended, send
from tests.gateway.test_streams import ask, next_of, open_live
from tests.service import Service
from tests.waiting import until

# Modest, because each accepted message is a turn in a process of its own.
EXAMPLES = 8
ANSWER_SECONDS = 60
TOLD = [route for route in routes() if route.path.startswith("/api/") and route.method != "WEBSOCKET"]
FUZZED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def fuzzed_description() -> dict[str, Any]:
    """Without what would fill the machine: any number of seats is valid, up to ten thousand."""
    told = description(routes())
    seats = told["components"]["schemas"]["ScaleBody"]["properties"]
    seats["seats"] = {"type": "integer", "minimum": 1, "maximum": 2}
    del seats["per_cpu"]
    return told


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(fuzzed_description())


@pytest.fixture(scope="module")
def session_of_requests(gateway: GatewayProcess) -> Iterator[requests.Session]:
    with requests.Session() as session:
        # Not limited like one token of a person: a fuzzer asks more often than that.
        yield session


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("route", TOLD, ids=lambda route: f"{route.method} {route.path}")
def test_no_request_breaks_the_gateway(
    gateway: GatewayProcess,
    session_of_requests: requests.Session,
    schema: Any,
    route: Route,
    mode: GenerationMode,
) -> None:
    headers = {"Authorization": f"Bearer {gateway.token(f'fuzz-{os.urandom(4).hex()}', 'fuzz')}"}

    @FUZZED
    @given(case=schema[route.path][route.method].as_strategy(mode))
    def ask_once(case: Any) -> None:
        kwargs = case.as_transport_kwargs(base_url=gateway.address, headers=headers)
        with session_of_requests.request(**kwargs, timeout=ANSWER_SECONDS, stream=True) as answer:
            assert answer.status_code != 500, answer.text
            if answer.status_code >= 400:
                error = answer.json()["error"]
                assert (bool(error["message"]), bool(error["hint"])) == (True, True)
                assert error["code"] == CODES[answer.status_code]

    ask_once()
    # Two seconds without an answer make it 503, on a busy machine.
    assert until(lambda: gateway.client("").get("/health").status_code == 200)


@FUZZED
@given(frames=st.lists(st.text(max_size=40) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["subscribe", "unsubscribe", "after", "watch", "x"]), inner, max_size=3
    ),
    max_leaves=6,
).map(json.dumps), max_size=8))  # fmt: skip
def check_socket(gateway: GatewayProcess, frames: list[str]) -> None:
    with open_live(gateway) as live:
        for frame in frames:
            live.send(frame)
        ask(live, unsubscribe="the last one")
        while next_of(live, "unsubscribed", "error")["session"] != "the last one":
            pass


def test_no_frame_breaks_the_live_socket(gateway: GatewayProcess) -> None:
    check_socket(gateway)


def test_the_description_is_served_and_names_every_parameter(gateway: GatewayProcess) -> None:
    """A parameter that is described is taken, whatever its value; one that is not is refused by name."""
    client = gateway.client(gateway.token("describer"))
    served = client.get("/api/openapi.json").json()
    assert served == json.loads(json.dumps(description(routes())))
    for route in TOLD:
        operation = served["paths"][route.path][route.method.lower()]
        assert operation["summary"].endswith((".", "`"))
        if route.method != "GET" or "{file}" in route.path:
            continue
        path = "/".join("demo" if part.startswith("{") else part for part in route.path.split("/"))
        for name in route.query:
            answer = client.get(path, params={name: "x"})
            assert "there is no parameter" not in answer.text, (path, name)
        assert error_of(client.get(path, params={"colour": "red"})) == (400, "invalid")


def test_after_all_that_a_message_is_answered(gateway: GatewayProcess, service: Service) -> None:
    client = gateway.client()
    client.post("/api/undrain")
    send(client, "alive", "hello")
    assert ended(client, "alive/1")
