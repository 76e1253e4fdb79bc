"""`python -m supervisor.host.preflight`: how the service would start here, as JSON; changes nothing.

`hermesctl doctor` calls it, so that its sentences about settings and cells are those of the service.
"""

import argparse
import asyncio
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from ipc import interpreter
from ipc.places import Places, add_options, chosen_places
from ipc.service_messages import FromZygote
from supervisor.config import key_remedies
from supervisor.config.derived import asked_models, exposed_interpreters, sandbox
from supervisor.config.endpoints import cautions, journal_password, key_fault
from supervisor.config.model_settings import Model
from supervisor.config.settings import Settings, Stt, load
from supervisor.config.toml_file import SettingsError
from supervisor.journal.opening import no_driver
from supervisor.llm.wanted_weights import wanted
from supervisor.processes.agent_user import AgentUser, choose
from supervisor.processes.cells import Limits
from supervisor.processes.orphans import Record
from supervisor.processes.spawner import Spawner, Wishes
from supervisor.processes.visibility import boundary
from supervisor.processes.zygote_client import Program

# The trial zygote holds no worker: it ends at once.
_END_SECONDS = 2.0
_Facts = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="supervisor.host.preflight", description="Look at settings and cells."
    )
    add_options(parser)
    parser.add_argument("--unit", action="store_true", help="a unit of systemd runs this instance")
    options = parser.parse_args()
    places = chosen_places(options)
    if options.unit:
        key_remedies.pretend_unit()
    facts: _Facts = {"file": str(places.settings_file), "file_exists": places.settings_file.exists()}
    settings = Settings()
    try:
        settings = load(places.settings_file)
        facts |= _of_settings(settings)
    except SettingsError as error:
        facts |= {"fault": error.fault, "hint": error.hint}
    facts["cell"] = asyncio.run(_cell(settings, choose(places.state, settings.workers.cell)))
    print(json.dumps(facts))


def _of_settings(settings: Settings) -> _Facts:
    workers = settings.workers
    return {
        "seats": workers.seats,
        "spares": workers.spares,
        "files_max": workers.files_max,
        "weights": wanted(settings),
        "cautions": [*cautions(settings), *exposed_interpreters(settings)],
        "model": _endpoint(settings, "model", settings.model) if settings.model else None,
        "models": [
            _endpoint(settings, f"models.{name}", model) | {"table": name, "agents": _users(settings, name)}
            for name, model in settings.models.items()
        ],
        "stt": _endpoint(settings, "stt", settings.stt) if settings.stt.base_url else None,
        "journal_url": settings.journal.url,
        "database": _database(settings),
    }


def _database(settings: Settings) -> _Facts | None:
    url = settings.journal.url
    if url is None:
        return None
    try:
        # Imported here only: a journal in a file needs no driver of a server.
        from supervisor.journal.postgres.server_survey import survey

        return survey(url, journal_password(settings))
    except ModuleNotFoundError as error:
        fault = no_driver(error)
        if not isinstance(fault, SettingsError):
            raise
        return {"fault": fault.fault, "hint": fault.hint}
    except SettingsError as error:
        return {"fault": error.fault, "hint": error.hint}


def _users(settings: Settings, model: str) -> list[str]:
    """Return the agents that ask this model, first or as a fallback."""
    return [agent for agent in settings.agents if model in asked_models(settings, agent)]


def _endpoint(settings: Settings, table: str, holder: Model | Stt) -> _Facts:
    """Return the address and the place of the key; never the key."""
    key_file = holder.api_key_file
    folder = settings.file.parent if settings.file else Path()
    handed_over = key_remedies.handed_over_from(settings.file, key_file) if key_file else None
    facts: _Facts = {
        "base_url": holder.base_url,
        "name": holder.name if isinstance(holder, Model) else holder.remote_model,
        "api_key_env": holder.api_key_env,
        "api_key_file": str(handed_over or folder / Path(key_file).expanduser()) if key_file else None,
    }
    fault = key_fault(settings, table, holder)
    return facts | ({"fault": fault.fault, "hint": fault.hint} if fault is not None else {})


async def _cell(settings: Settings, user: AgentUser) -> _Facts:
    """Return the cell that the service would choose, by the same trial."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        places = Places(place, place, place)
        wishes = Wishes(
            cell=settings.workers.cell,
            limits=Limits(),
            sandbox=lambda: sandbox(settings, "default"),
            hide=lambda: (folder,),
            boundary=partial(boundary, places, user),
            program=Program(),
            environment=interpreter.environment(),
            check=lambda: None,
        )
        spawner = Spawner(
            wishes, place / "zygote.log", Record(place / "processes"), _received, _lose, _changed
        )
        await spawner.open()
        fault = spawner.fault
        await spawner.close(_END_SECONDS)
        if fault is not None:
            return {"kind": spawner.cell.name, "fault": fault.fault, "hint": fault.hint}
        return {
            "kind": spawner.cell.name,
            "description": f"{spawner.cell.description}; agents {user.sentence}",
            "shortcomings": spawner.shortcomings,
        }


def _changed(spawner: Spawner) -> None:
    """Ignore the state: the trial reports what matters."""


def _received(spawner: Spawner, message: FromZygote, descriptor: int | None) -> None:
    """Ignore the frame: no worker was requested."""


def _lose(spawner: Spawner, reason: object, is_certain: bool) -> None:
    """Ignore the loss: the zygote held no worker."""


if __name__ == "__main__":
    main()
