"""`python -m tests.acceptance.hostile_supervisor`: the supervisor, whose workers attack it when told to.

It gives up a client that has stopped reading after seconds, so that a test need not wait for half a minute.
"""

from functools import partial

from ipc import server
from supervisor import entry
from supervisor.app import App
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program

if __name__ == "__main__":
    assert hasattr(server, "UNREAD_SECONDS_MAX")
    server.UNREAD_SECONDS_MAX = 4.0
    program = Program(run="tests.acceptance.hostile_worker")
    vars(entry)["App"] = partial(App, make_processes=partial(Processes, program=program))
    entry.main()
