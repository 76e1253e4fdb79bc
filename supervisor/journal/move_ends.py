"""The two ends of a move (move.py): the journal that the settings choose, and the one that is named."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from ipc.places import Places
from supervisor.config.endpoints import journal_password
from supervisor.config.fields import DATABASE, has_password
from supervisor.config.settings import Settings
from supervisor.config.toml_file import SettingsError
from supervisor.journal.errors import JournalError
from supervisor.journal.move import Source, Target
from supervisor.journal.move_files import file_source, file_target
from supervisor.journal.opening import no_driver, own_host

# Names the file in the state folder.
FILE = "sqlite:"


@contextmanager
def ends(places: Places, settings: Settings, url: str, password_file: str) -> Iterator[tuple[Source, Target]]:
    """Open both; `password_file` is that of the named one."""
    if url == FILE and settings.journal.url is None:
        fault = f"the journal is in {places.journal} already"
        raise JournalError(fault, "name a database: postgresql://host/database")
    with _source(places, settings) as source, _target(places, settings, url, password_file) as target:
        yield source, target


def lines(url: str, password_file: str) -> list[str]:
    """Return what hermes.toml has to say about the journal afterwards."""
    if url == FILE:
        return []
    named = [f"password_file = {json.dumps(password_file)}"] if password_file else []
    return ["[journal]", f"url = {json.dumps(url)}", *named]


def _source(places: Places, settings: Settings) -> AbstractContextManager[Source]:
    url = settings.journal.url
    if url is None:
        return file_source(places.journal, places.clips)
    try:
        from supervisor.journal.postgres.move_server import server_source
    except ModuleNotFoundError as error:
        raise no_driver(error) from error
    return server_source(url, journal_password(settings), own_host(places))


def _target(
    places: Places, settings: Settings, url: str, password_file: str
) -> AbstractContextManager[Target]:
    if url == FILE:
        return file_target(places.journal, places.clips)
    if has_password(url):
        hint = "write it into a file that only this user can read, and name that by --password-file"
        raise SettingsError("the address contains a password", hint)
    try:
        DATABASE.read(url)
        from supervisor.journal.postgres.move_server import server_target
    except ValueError:
        raise SettingsError(f"{url} names no journal", f"write {DATABASE.wants}, or {FILE}") from None
    except ModuleNotFoundError as error:
        raise no_driver(error) from error
    named = replace(settings.journal, url=url, password_file=password_file or None)
    return server_target(url, journal_password(replace(settings, journal=named)))
