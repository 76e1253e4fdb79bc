"""The embedded model with its real weights: it answers, keeps its doors shut, and comes back."""

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from hermesctl.weight_catalogue import find
from supervisor.config.model_settings import EmbeddedWeights
from supervisor.llm.embedded import MODEL_FILE, MODEL_NAME, WEIGHTS, EmbeddedModel, embedded_model
from tests.services.watching import PATIENCE_SECONDS, QUICK, has_ended, running
from tests.weights import pulled


@pytest.fixture(scope="session")
def models() -> Path:
    return pulled(MODEL_NAME)


@pytest.fixture(autouse=True)
def one_cpu() -> Iterator[None]:
    """Beside other test processes, the threads of llama.cpp would spend their time waiting for each other.

    tests/acceptance/test_embedded_model.py has a service with all CPUs.
    """
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(all_cpus)[os.getpid() % len(all_cpus)]})
    yield
    os.sched_setaffinity(0, all_cpus)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def ask(address: str, key: str, *questions: str) -> httpx.Response:
    """The first question is the oldest; answers of the model lie between them."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(questions)]
    body = {"model": MODEL_NAME, "messages": messages, "temperature": 0, "max_tokens": 40}
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
        return await client.post(
            f"{address}/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}
        )


def words(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def visible_to_the_host(pid: int) -> str:
    return "".join(Path(f"/proc/{pid}/{place}").read_bytes().decode() for place in ("cmdline", "environ"))


def quick(model: EmbeddedModel) -> EmbeddedModel:
    return dataclasses.replace(model, spec=dataclasses.replace(model.spec, restart=QUICK))


def test_it_knows_the_capital_of_france_and_the_context_of_the_next_question(models: Path) -> None:
    async def story() -> None:
        model = embedded_model(models)
        async with running(model.spec) as watched:
            address = (await watched.seen("ready")).address
            assert watched.states() == ["starting", "warming", "ready"]
            question = "What is the capital of France?"
            first = words(await ask(address, model.api_key, question))
            assert "Paris" in first
            assert "Rome" in words(await ask(address, model.api_key, question, first, "And of Italy?"))

    run(story())


def test_its_doors_are_shut_to_all_but_its_key(models: Path) -> None:
    async def story() -> None:
        model = embedded_model(models)
        async with running(model.spec) as watched:
            address = (await watched.seen("ready")).address
            assert address.startswith("http://127.0.0.1:")
            assert (await ask(address, "a-wrong-key", "Hello")).status_code == 401
            async with httpx.AsyncClient(base_url=address.removesuffix("/v1")) as client:
                assert (await client.get("/v1/models")).status_code == 401
                assert (await client.get("/")).status_code == 404
                stranger = await client.options("/v1/models", headers={"Origin": "http://elsewhere.example"})
                assert stranger.headers["Access-Control-Allow-Origin"] == "http://127.0.0.1"
            assert model.api_key not in visible_to_the_host(watched.row()["pid"])

    run(story())


def test_a_killed_model_is_ready_again_under_the_same_key(models: Path) -> None:
    async def story() -> None:
        model = quick(embedded_model(models))
        async with running(model.spec) as watched:
            await watched.seen("ready")
            os.kill(watched.row()["pid"], signal.SIGKILL)
            assert "SIGKILL" in (await watched.seen("resting")).detail
            address = (await watched.seen("ready", times=2)).address
            assert words(await ask(address, model.api_key, "Hello"))
            assert watched.row()["restarts"] == 1

    run(story())


@pytest.mark.parametrize("state", ["warming", "ready"])
def test_sigterm_ends_it_at_once_whatever_it_does(models: Path, state: str) -> None:
    async def story() -> None:
        async with running(quick(embedded_model(models)).spec) as watched:
            await watched.seen(state)
            os.kill(watched.row()["pid"], signal.SIGTERM)
            assert "SIGTERM" in (await watched.seen("resting")).detail

    run(story())


def test_missing_weights_are_waited_for_with_the_command_that_mends_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(embedded_model(tmp_path).spec) as watched:
            waiting = await watched.seen("waiting")
            assert "there are no weights" in waiting.detail
            assert waiting.hint.startswith("hermesctl models pull smollm2-135m")
            assert watched.row()["pid"] is None

    run(story())


def test_weights_of_the_wrong_size_are_refused_before_they_are_loaded(tmp_path: Path) -> None:
    (tmp_path / MODEL_NAME).mkdir()
    (tmp_path / MODEL_NAME / MODEL_FILE).write_bytes(b"GGUF, but not all of it")

    async def story() -> None:
        async with running(embedded_model(tmp_path).spec) as watched:
            failed = await watched.seen("failed")
            assert "are 23 bytes instead of 98,362,432" in failed.detail
            assert failed.hint == "hermesctl models pull smollm2-135m"
            assert "warming" not in watched.states()

    run(story())


def test_weights_that_llama_cannot_load_are_a_failure_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / MODEL_NAME).mkdir()
    (tmp_path / MODEL_NAME / MODEL_FILE).write_bytes(b"not weights")
    model = embedded_model(tmp_path)
    spec = dataclasses.replace(model.spec, options={**model.spec.options, "model_bytes": 11})

    async def story() -> None:
        async with running(spec) as watched:
            failed = await watched.seen("failed")
            assert failed.detail.startswith("the model server did not start: ")
            assert "[model] in hermes.toml" in failed.hint

    run(story())


def test_weights_put_in_place_later_are_found_without_a_restart(models: Path, tmp_path: Path) -> None:
    async def story() -> None:
        async with running(quick(embedded_model(tmp_path)).spec) as watched:
            await watched.seen("waiting")
            (tmp_path / MODEL_NAME).symlink_to(models / MODEL_NAME)
            await watched.seen("ready")

    run(story())


def test_the_death_of_the_supervisor_takes_the_model_along(models: Path) -> None:
    line = [sys.executable, "-m", "tests.model_service.lone_supervisor", str(models)]
    root = Path(__file__).parent.parent.parent
    with subprocess.Popen(line, cwd=root, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        assert not has_ended(pid)
        supervisor.kill()
        assert has_ended(pid, PATIENCE_SECONDS)


def test_the_service_and_the_catalogue_name_the_same_weights() -> None:
    assert tuple(WEIGHTS) == get_args(EmbeddedWeights)
    for name, stored in WEIGHTS.items():
        (file,) = find(name).files
        assert (file.name, file.size_bytes) == stored
