"""The only module that uses xllamacpp: an OpenAI-compatible server on loopback that requires a key."""

import math
import os
from typing import Any

import msgspec

from ipc.cpus import OPENMP_SPINS, available_cpus

os.environ["GOMP_SPINCOUNT"] = OPENMP_SPINS

import xllamacpp  # type: ignore[import-untyped]

# One slot per CPU keeps the cores busy; with more than a few, each answer is slower than a reader.
_SLOTS_MAX = 4
# Prompts kept for reuse. llama.cpp's own limit of 8 GiB would be most of a small machine.
_PROMPT_CACHE_MEBIBYTES = 128
# A small model that has begun to repeat itself does not stop on its own.
_ANSWER_TOKENS_MAX = 1024
# Greedy decoding, unless a request sets a temperature: random sampling ruins the output of so small a model.
_TEMPERATURE = 0.0
# Errors only: lower levels print prompts.
_LOG_ERRORS = 1


class Options(msgspec.Struct, frozen=True):
    """Options from the supervisor. They contain the key, so they come on standard input."""

    model_path: str
    alias: str
    api_key: str
    model_bytes: int
    # Of one conversation; every slot has as much.
    context_tokens: int
    # The template in the weights, which describes tools, instead of the plain one.
    own_template: bool = False


class Llama:
    """A running server. Loading holds the GIL, so no other thread of this process runs meanwhile."""

    def __init__(self, options: Options) -> None:
        self._server = xllamacpp.Server(_parameters(options))

    @property
    def address(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self._server.listening_address}/v1"

    def warm_up(self) -> None:
        """Computes one token to read in all weights, so that the first request does not wait for the disk."""
        request = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, "temperature": 0}
        answer = self._server.handle_chat_completions(request)
        if not isinstance(answer, dict) or "choices" not in answer:
            raise RuntimeError("the model gave no answer to its first question")


def _parameters(options: Options) -> Any:
    # More threads than CPUs only wait for each other.
    cpus = max(1, math.ceil(available_cpus()))
    slots = min(cpus, _SLOTS_MAX)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model_path
    parameters.model_alias = {options.alias}
    parameters.n_ctx = options.context_tokens * slots
    parameters.n_parallel = slots
    parameters.n_predict = _ANSWER_TOKENS_MAX
    parameters.cpuparams.n_threads = cpus
    parameters.cpuparams_batch.n_threads = cpus
    parameters.cache_ram_mib = _PROMPT_CACHE_MEBIBYTES
    if not options.own_template:
        # The template in the smallest weights adds a system prompt to every conversation without one, and
        # with it that model answers a plain question in nonsense. The plain form of it does not.
        parameters.chat_template = "chatml"
    parameters.sampling.temp = _TEMPERATURE
    parameters.verbosity = _LOG_ERRORS
    _restrict_access(parameters, options.api_key)
    return parameters


def _restrict_access(parameters: Any, api_key: str) -> None:
    """Loopback, a free port, one key, no web pages, no cross-origin requests, no downloads."""
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [api_key]
    parameters.ui = False
    parameters.cors_origins = "http://127.0.0.1"
    parameters.cors_origins_explicit = True
    parameters.cors_credentials = False
    parameters.endpoint_slots = False
    parameters.endpoint_props = False
    parameters.endpoint_metrics = False
    parameters.offline = True
