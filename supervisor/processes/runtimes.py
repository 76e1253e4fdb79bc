"""Runtimes: what agents share a zygote by, and the spawners of all runtimes in use.

A runtime is an interpreter, a kind of agent, and an entry with the folders of its modules. Agents that agree
on these share a spawner, and so a zygote. The *default* runtime, the built-in kind in the supervisor's own
interpreter, is opened with the service and stays. Any other one is opened when the core first wants a worker
of it (`want`), and is reported to the core, agent by agent (RuntimeChanged):

    cold ── want ──► cold, its zygote starts ── Warm ──► warm
    warm ── its zygote ended ──► cold, the next zygote starts after a pause
    cold ── its zygote cannot start, or no agent can be had in it ──► failed; the next `want` tries again

The core starts workers of warm runtimes only, so a slow or broken runtime holds no seat of the others.

A runtime that no agent uses any more, after a reload, is retired: it forks no more workers, and its zygote
ends with the last one that it has. So do the zygotes of an earlier image of this process.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from ipc.service_messages import Sandbox
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.handoff.carried_workers import HandedZygote
from supervisor.processes.spawner import Spawner, SpawnerState, Wishes
from supervisor.processes.zygote_client import Program

_BUILTIN = "builtin"
_HINT = "run `hermesctl agents add NAME`, which checks its interpreter and lays beside it what it needs"


@dataclass(frozen=True, slots=True)
class Runtime:
    """`python` is the path of an interpreter, empty for the supervisor's own."""

    kind: str = _BUILTIN
    python: str = ""
    entry: str = ""
    # Folders of the agent's modules.
    path: tuple[str, ...] = ()

    def program(self, default: Program, packages: str) -> Program:
        """Return what its zygote runs; `packages` is where a foreign interpreter finds msgspec and zmq."""
        own = replace(default, kind=self.kind, entry=self.entry, code=self.path)
        return replace(own, python=self.python, path=(packages,)) if self.python else own

    def cold_row(self, agent: str, own_python: str) -> dict[str, Any]:
        """Return what is shown of an agent whose runtime was not started.

        `foreign`: its interpreter is not ours; `own_runtime`: it is not the default one.
        """
        return {
            "agent": agent,
            "kind": self.kind,
            "python": self.python or own_python,
            "foreign": bool(self.python),
            "own_runtime": self != DEFAULT,
            "entry": self.entry,
            "state": "cold",
            "pid": None,
            "fault": "",
            "hint": "",
        }

    @property
    def log_name(self) -> str:
        if self == DEFAULT:
            return "zygote.log"
        return f"zygote-{self.kind}-{sha256(repr(self).encode()).hexdigest()[:8]}.log"


DEFAULT = Runtime()
# Makes the spawner of a runtime.
Make = Callable[[Wishes, str], Spawner]


class Runtimes:
    """`agents` returns the runtime of every agent in the settings; one that is not there has the default."""

    def __init__(
        self,
        wishes: Wishes,
        make: Make,
        agents: Callable[[], Mapping[str, Runtime]],
        sandbox: Callable[[str], Sandbox],
        packages: str,
        report: Callable[[RuntimeChanged], None],
    ) -> None:
        self._wishes = wishes
        self._make = make
        self._agents = agents
        self._sandbox = sandbox
        self._packages = packages
        self._report = report
        self.default = make(wishes, DEFAULT.log_name)
        self._others: dict[Runtime, Spawner] = {}
        # Retired ones, and those of earlier images of this process, while they have a worker.
        self._former: list[Spawner] = []

    @property
    def all(self) -> tuple[Spawner, ...]:
        return (self.default, *self._others.values(), *self._former)

    def of(self, agent: str) -> Spawner:
        """Return the spawner for workers of this agent; one that was not wanted yet is opened."""
        runtime = self._agents().get(agent, DEFAULT)
        if runtime == DEFAULT:
            return self.default
        if runtime not in self._others:
            self._others[runtime] = self._make(self._wishes_of(runtime), runtime.log_name)
        self._others[runtime].want()
        return self._others[runtime]

    def want(self, agent: str) -> None:
        """Open the runtime of this agent; RuntimeChanged follows, also when it is open already."""
        spawner = self.of(agent)
        if spawner is self.default or spawner.state is SpawnerState.READY:
            self._report(RuntimeChanged(frozenset({agent}), "warm"))

    def changed(self, spawner: Spawner) -> None:
        """The state of a spawner has changed."""
        runtime = next((each for each, found in self._others.items() if found is spawner), None)
        if runtime is not None:
            self._tell(self._using(runtime), spawner)

    def reread(self) -> None:
        """The settings have changed: retire what is not used any more, and report each agent's runtime."""
        used = {runtime: self._using(runtime) for runtime in self._agents().values() if runtime != DEFAULT}
        for runtime in self._others.keys() - used.keys():
            spawner = self._others.pop(runtime)
            spawner.retire()
            self._former.append(spawner)
        for runtime, agents in used.items():
            self._tell(agents, self._others.get(runtime))

    def _using(self, runtime: Runtime) -> frozenset[str]:
        return frozenset(agent for agent, found in self._agents().items() if found == runtime)

    def _tell(self, agents: frozenset[str], spawner: Spawner | None) -> None:
        if not agents:
            return
        if spawner is not None and spawner.state is SpawnerState.READY:
            self._report(RuntimeChanged(agents, "warm"))
        elif spawner is not None and spawner.fault is not None:
            for agent in sorted(agents):
                words = _naming(agent, spawner.fault.fault), _naming(agent, spawner.fault.hint)
                self._report(RuntimeChanged(frozenset({agent}), "failed", *words))
        else:
            self._report(RuntimeChanged(agents, "cold"))

    def _wishes_of(self, runtime: Runtime) -> Wishes:
        def sandbox() -> Sandbox:
            return self._sandbox(next(iter(sorted(self._using(runtime))), DEFAULT_AGENT))

        program = runtime.program(self._wishes.program, self._packages)
        return replace(self._wishes, program=program, sandbox=sandbox, is_optional=True, hint=_HINT)

    def take_over(self, zygotes: Iterable[HandedZygote]) -> dict[int, Spawner]:
        """Hold the zygotes of an earlier image; return their spawners by the pids of their guards."""
        for zygote in zygotes:
            spawner = self._make(self._wishes, DEFAULT.log_name)
            spawner.take_over(zygote)
            self._former.append(spawner)
        return {spawner.guard: spawner for spawner in self._former}

    def end_unused(self, used: Collection[Spawner]) -> None:
        """End the former zygotes that have no worker left."""
        for spawner in self._former:
            if spawner not in used:
                spawner.give_up_zygote()
        self._former = [spawner for spawner in self._former if spawner in used]

    def rows(self) -> list[dict[str, Any]]:
        """Return every agent with its runtime: the state, and the fault with its remedy."""
        return [self._row(agent, runtime) for agent, runtime in self._agents().items()]

    def _row(self, agent: str, runtime: Runtime) -> dict[str, Any]:
        row = runtime.cold_row(agent, self._wishes.program.python)
        spawner = self.default if runtime == DEFAULT else self._others.get(runtime)
        if spawner is None:
            return row
        row["pid"] = spawner.guard if spawner.zygote is not None else None
        if spawner.state is SpawnerState.READY:
            return row | {"state": "warm"}
        if spawner.fault is not None:
            words = {"fault": spawner.fault.fault, "hint": spawner.fault.hint}
            return row | {"state": "failed"} | {key: _naming(agent, text) for key, text in words.items()}
        return row | {"fault": spawner.detail}


def _naming(agent: str, words: str) -> str:
    """Put the agent's name where words about its runtime, which others may share, have NAME."""
    named = words.replace("[agents.NAME]", f"[agents.{agent}]")
    return named.replace("hermesctl agents add NAME", f"hermesctl agents add {agent}")
