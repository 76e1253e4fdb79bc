"""A worker of agents with MCP servers, forked from a rehearsed process."""

from ipc.message_parts import MCP_ENTRY
from tests.worker.forked_worker import main

if __name__ == "__main__":
    main(entry=MCP_ENTRY)
