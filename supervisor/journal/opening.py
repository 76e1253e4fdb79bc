"""Opens the journal that the settings choose: the file in the state folder, or a server."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ipc.places import Places
from supervisor.config.endpoints import journal_password
from supervisor.config.settings import Settings
from supervisor.config.toml_file import SettingsError
from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.journal import Journal

if TYPE_CHECKING:
    from supervisor.journal.postgres.server_journal import ServerJournal

    ChosenJournal = Journal | ServerJournal
else:
    ChosenJournal = Journal


def open_chosen(
    places: Places,
    settings: Settings,
    handed: tuple[int, str] | None,
    wait: Callable[[JournalUnreachable], None],
) -> ChosenJournal:
    """Open the journal; `handed` is the lock and the life of the image before this one.

    `wait` is called while a server does not answer, and then it is tried again.
    """
    url = settings.journal.url
    if url is None:
        if handed is not None:
            return Journal.take_over(places.journal, handed[0])
        return Journal.open(places.journal, places.lock)
    try:
        # Imported here only: a journal in a file needs no driver of a server.
        from supervisor.journal.postgres.host_life import Host
        from supervisor.journal.postgres.server_journal import ServerJournal
    except ModuleNotFoundError as error:
        raise no_driver(error) from error
    password = journal_password(settings)
    hosts = settings.hosts
    host = Host(
        hosts.own_name,
        place=own_host(places),
        lease_seconds=hosts.lease_seconds,
        labels=hosts.labels,
        has_local_files=hosts.files == "local",
    )
    while True:
        try:
            if handed is not None:
                journal = ServerJournal.take_over(url, *handed, host, password)
            else:
                journal = ServerJournal.open(url, host, places.lock, password)
            journal.owners.labels_of = lambda session: settings.for_session(session).labels
            return journal
        except JournalUnreachable as error:
            wait(error)


def own_host(places: Places) -> str:
    """Also the state folder: its lock says that the former life is over, and another instance has another."""
    return f"{socket.gethostname()}:{places.state}"


def no_driver(error: ModuleNotFoundError) -> Exception:
    """Return what the failed import of a server's driver means; any other is a defect."""
    if error.name is None or not error.name.startswith("psycopg"):
        return error
    fault = "the journal is on a PostgreSQL server, and its driver is not installed"
    return SettingsError(fault, "pip install 'hermes-supervisor[postgres]'")
