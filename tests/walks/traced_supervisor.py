"""`python -m tests.walks.traced_supervisor`: the supervisor, its workers and services, recorded."""

from functools import partial

from supervisor import entry
from supervisor.app import App
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program
from tests.walks import traced

if __name__ == "__main__":
    traced.record()
    program = Program(run="tests.walks.traced_worker", rehearse="tests.walks.traced_worker")
    vars(entry)["App"] = partial(App, make_processes=partial(Processes, program=program))
    entry.main()
