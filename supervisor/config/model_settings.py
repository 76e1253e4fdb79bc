"""[model], [models.NAME] and [embedded]: the language models, and which of them an agent asks, in order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from supervisor.config.agent_settings import Agent
from supervisor.config.fields import AFTER_RESTART, PRICE, TEXT, URL, VARIABLE, key, maybe, one_of, whole
from supervisor.config.toml_file import SettingsFile

# In `model` and `fallback` of an agent: the model of [model], or the embedded one without that table.
DEFAULT_MODEL = "default"
# The endpoint of the embedded model, whose address changes with every start.
EMBEDDED = "embedded"
EmbeddedWeights = Literal["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
_REQUIRED = (("base_url", "http://127.0.0.1:8000/v1"), ("name", "gpt-4o-mini"))


@dataclass(frozen=True)
class Model:
    """[model]: an OpenAI-compatible endpoint; without this table the embedded model answers."""

    base_url: str = key("base_url", URL)
    name: str = key("name", TEXT)
    api_key_env: str | None = key("api_key_env", maybe(VARIABLE))
    api_key_file: str | None = key("api_key_file", maybe(TEXT))
    price_in: float = key("price_in", PRICE, 0)
    price_out: float = key("price_out", PRICE, 0)
    context_tokens: int | None = key("context_tokens", maybe(whole(1_000, 100_000_000)))


@dataclass(frozen=True)
class Embedded:
    """[embedded]: the weights of the embedded model, which answers without a [model]."""

    weights: EmbeddedWeights = key("weights", one_of(EmbeddedWeights), "smollm2-135m", AFTER_RESTART)

    @property
    def calls_tools(self) -> bool:
        """Return whether the model can call tools; their descriptions would confuse the smallest one."""
        return self.weights != "smollm2-135m"


def models_of(agent: Agent | None) -> tuple[str, ...]:
    """Return the names of the models that an agent asks, in their order."""
    if agent is None:
        return (DEFAULT_MODEL,)
    return (agent.model or DEFAULT_MODEL, *agent.fallback)


def refuse_incomplete_models(source: SettingsFile) -> None:
    """Refuse a model without an address or a name, and a second table for the default one."""
    if source.has("models", DEFAULT_MODEL):
        hint = "write its keys into [model], or choose another name"
        raise source.error(("models", DEFAULT_MODEL), "has the name that stands for [model]", hint)
    named = source.data.get("models")
    tables = [("models", name) for name in named] if isinstance(named, dict) else []
    for table in [("model",), *tables]:
        other = "to use the embedded model" if table == ("model",) else "and the places that name it"
        for wanted, example in _REQUIRED:
            if source.has(*table) and not source.has(*table, wanted):
                hint = f'add {wanted} = "{example}", or remove the whole table {other}'
                raise source.error(table, f"has no {wanted}", hint)


def refuse_unknown_models(
    source: SettingsFile, agents: Mapping[str, Agent], models: Mapping[str, Model]
) -> None:
    """Refuse an agent that names a model that does not exist, or the same one twice."""
    known = (DEFAULT_MODEL, *models)
    for agent, found in agents.items():
        chain = models_of(found)
        for place, name in enumerate(chain):
            where = ("agents", agent, "fallback" if place else "model")
            if name not in known:
                names = ", ".join(f'"{each}"' for each in known)
                what = f'names the model "{name}", which does not exist'
                raise source.error(where, what, f"use one of {names}, or add a table [models.{name}]")
            if name in chain[:place]:
                what = f'names the model "{name}", which it asks before'
                raise source.error(where, what, "name every model once")
