"""Parts of the model service by themselves: the check of its weights, and what llama.cpp is told."""

from pathlib import Path
from typing import Any

import pytest

from model_service import llama
from model_service.__main__ import CannotServe, check_weights
from model_service.llama import Llama, Options, _parameters

OPTIONS = Options("model.gguf", "small", "a-key", 7, 4096)


def test_weights_of_another_size_or_none_are_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with pytest.raises(CannotServe, match="of small cannot be read: No such file") as refused:
        check_weights(path, 7, "small")
    assert refused.value.hint == "hermesctl models pull small"
    path.write_bytes(b"7 bytes")
    check_weights(path, 7, "small")
    for size in (6, 8):
        with pytest.raises(CannotServe, match="are 7 bytes instead of"):
            check_weights(path, size, "small")


def test_a_model_without_an_answer_to_its_first_question_is_not_ready() -> None:
    class Server:
        def __init__(self, answer: object) -> None:
            self.handle_chat_completions = lambda request: answer

    def warmed(answer: object) -> None:
        llama = Llama.__new__(Llama)
        llama._server = Server(answer)
        llama.warm_up()

    warmed({"choices": []})
    for answer in ({"error": "no"}, "choices", None):
        with pytest.raises(RuntimeError, match="no answer to its first question"):
            warmed(answer)


def test_every_slot_has_a_whole_conversation_and_nothing_is_without_a_bound() -> None:
    told: Any = _parameters(OPTIONS)
    assert told.n_ctx == 4096 * told.n_parallel
    assert 1 <= told.n_parallel <= 4
    assert (told.n_predict, told.cache_ram_mib, told.sampling.temp) == (1024, 128, 0.0)
    assert told.cpuparams.n_threads == told.cpuparams_batch.n_threads > 0
    assert told.chat_template == "chatml"
    own: Any = _parameters(Options("model.gguf", "small", "a-key", 7, 4096, own_template=True))
    assert own.chat_template == ""


def test_only_loopback_and_the_key_reach_it_and_no_prompt_is_logged() -> None:
    told: Any = _parameters(OPTIONS)
    assert (list(told.hostnames), told.port, list(told.api_keys)) == (["127.0.0.1"], 0, ["a-key"])
    assert not any((told.ui, told.cors_credentials, told.endpoint_slots, told.endpoint_props))
    assert not told.endpoint_metrics
    assert (told.offline, told.verbosity) == (True, 1)


@pytest.mark.parametrize(("cpus", "threads", "slots"), [(0.5, 1, 1), (1.5, 2, 2), (4.0, 4, 4), (32.0, 32, 4)])
def test_a_share_of_a_cpu_counts_as_one_and_more_than_four_answers_wait(
    monkeypatch: pytest.MonkeyPatch, cpus: float, threads: int, slots: int
) -> None:
    monkeypatch.setattr(llama, "available_cpus", lambda: cpus)
    told: Any = _parameters(OPTIONS)
    assert (told.cpuparams.n_threads, told.n_parallel, told.n_ctx) == (threads, slots, 4096 * slots)


def test_the_weights_and_their_name_are_those_of_the_options() -> None:
    told: Any = _parameters(OPTIONS)
    assert (told.model.path, list(told.model_alias)) == ("model.gguf", ["small"])
    assert (told.cors_origins, told.cors_origins_explicit) == ("http://127.0.0.1", True)
