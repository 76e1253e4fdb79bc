"""The kind `hermes`: AIAgent of hermes-agent answers, in the worker itself.

The zygote, in an environment of the user that has hermes-agent, imports it and lets it answer one turn; a
spare builds its AIAgent before it is ready. Of a session's first turn that leaves what every turn costs.

HERMES_HOME is a folder of the session's workspace, or with `home` in its table a folder of the user. A
spare does not know its session yet and builds the AIAgent in a temporary home. Its log is switched off, since
it quotes what people write.
"""

import asyncio
import gc
import os
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from ipc.messages import AgentSpec, ModelEndpoint, Setup
from worker import spending
from worker.agents import agent_thread, rehearsal_server
from worker.agents.context import Host
from worker.agents.hermes_home import Home, write_home
from worker.agents.hermes_tls import share_contexts
from worker.agents.hermes_turns import HermesTurns, imported
from worker.attempt import Attempt
from worker.errors import AgentError

# Our modules are out of its sight (worker/own_modules.py).
RUNS_FOREIGN_CODE = True

_HOME = ".hermes-agent"
_PREFIX = "hermes-agent-"
# AIAgent asks the model's server for its context. One that does not answer delays no worker; its turns wait.
_SWITCH_SECONDS_MAX = 10.0
_REMEDY = f"run `{sys.executable} -m pip install 'hermes-agent==0.19.*'`, then `hermesctl restart`"


def load(entry: str) -> "HermesKind":
    """AgentError when hermes-agent is not installed here."""
    # Its modules look for it at once; without one they would read the home of the user.
    home = Home(Path(tempfile.mkdtemp(prefix=_PREFIX)))
    sys.dont_write_bytecode = True  # into folders of the user
    try:
        imported("run_agent")
    except AgentError:
        shutil.rmtree(home.path)
        raise
    # A version without that module makes its contexts as it does.
    with suppress(AgentError):
        share_contexts(imported("agent.ssl_verify"), imported("httpx").create_ssl_context)
    return HermesKind(home)


class HermesKind:
    """AIAgents, each in a worker of its own; the zygote's own has this home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def rehearse(self) -> None:
        """Lets an AIAgent answer one turn, and leaves no thread, socket or file of it."""
        try:
            write_home(self._home.path)
            with rehearsal_server.serving() as base_url:
                turns = HermesTurns(self._home)
                turns.use(ModelEndpoint(base_url, "rehearsal"))
                turns.run("Is all well?", ())
                turns.close()
        finally:
            shutil.rmtree(self._home.path, ignore_errors=True)
        self._home.find_paths()
        said = turns.said
        del turns
        gc.collect()
        if said != "".join(rehearsal_server.WORDS):
            raise AgentError("hermes-agent gave a wrong answer in its rehearsal", _REMEDY)
        if left := [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]:
            # A fork has none of its parent's threads, but the locks that they held.
            raise AgentError(f"hermes-agent left a thread in its rehearsal: {left[0]}", _REMEDY)

    def agent(self, spec: AgentSpec) -> "Hermes":
        return Hermes(spec, self._home)


class Hermes:
    """Answers the turns of one session through one AIAgent."""

    def __init__(self, spec: AgentSpec, home: Home) -> None:
        self._name = spec.name
        self._own_home = str(spec.options.get("home", ""))
        self._home = home
        self._turns: HermesTurns | None = None
        self._switching: asyncio.Future[None] | None = None

    async def set_up(self, setup: Setup) -> None:
        """Builds the AIAgent ahead of the first turn, with the model that the turn will probably have."""
        os.environ.update(setup.secrets)
        agent_thread.divert_output(self._name)
        turns = self._turns = await asyncio.to_thread(self._build)
        if setup.model is not None and not self._own_home:
            self._switching = asyncio.ensure_future(asyncio.to_thread(turns.use, setup.model))
            await asyncio.wait((self._switching,), timeout=_SWITCH_SECONDS_MAX)

    async def answer(self, attempt: Attempt) -> str:
        await spending.check(attempt, holds=True)
        agent_thread.divert_output(self._name)
        if self._switching is not None:
            # The turn switches again if this has failed, and fails with the reason.
            await asyncio.gather(self._switching, return_exceptions=True)
            self._switching = None
        await agent_thread.run(attempt, self._name, self._load)
        if not agent_thread.has_text(attempt):
            raise AgentError(
                "hermes-agent ended its turn without an answer", "send the message again, or ask differently"
            )
        return "stop"

    def _build(self) -> HermesTurns:
        if self._own_home:
            self._home.move(self._session_home())
            return self._with_threads(HermesTurns(self._home, has_own_model=True))
        home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            write_home(home)
            self._home.move(home)
            return self._with_threads(HermesTurns(self._home))
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def _with_threads(self, turns: HermesTurns) -> HermesTurns:
        turns.start_kept_threads()
        return turns

    def _load(self) -> agent_thread.Work:
        if self._turns is None:
            self._turns = self._build()
        return partial(self._answer, self._turns)

    def _answer(self, turns: HermesTurns, host: Host) -> None:
        turns.answer(host, self._session_home())

    def _session_home(self) -> Path:
        if not self._own_home:
            home = Path.cwd() / _HOME
            write_home(home)
            return home
        home = Path(self._own_home)
        if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
            raise AgentError(
                f"[agents.{self._name}] home is {home}, which uid {os.getuid()} may not read and write",
                "give that user the folder, or remove home: each session has one of its own then",
            )
        return home
