"""`python -m tests.acceptance.crashing_supervisor`: the supervisor, with a worker that crashes at start."""

from functools import partial

from supervisor import entry
from supervisor.app import App
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program

if __name__ == "__main__":
    program = Program(run="tests.acceptance.crashing_worker")
    vars(entry)["App"] = partial(App, make_processes=partial(Processes, program=program))
    entry.main()
