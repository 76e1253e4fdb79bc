"""`python -m tests.acceptance.hostile_supervisor`: the supervisor, whose workers attack it when told to.

It gives up a client that has stopped reading after seconds, so that a test need not wait for half a minute,
and holds little for a worker that does not read: never as much as it is sent, by what is offered to it.
"""

from functools import partial

from ipc import server
from supervisor import entry
from supervisor.app import App
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program
from supervisor.workers import link

WORKER_UNSENT_BYTES_MAX = 256 * 1024

if __name__ == "__main__":
    assert hasattr(server, "UNREAD_SECONDS_MAX")
    server.UNREAD_SECONDS_MAX = 4.0
    assert hasattr(link, "UNSENT_BYTES_MAX")
    link.UNSENT_BYTES_MAX = WORKER_UNSENT_BYTES_MAX
    program = Program(run="tests.acceptance.hostile_worker")
    vars(entry)["App"] = partial(App, make_processes=partial(Processes, program=program))
    entry.main()
