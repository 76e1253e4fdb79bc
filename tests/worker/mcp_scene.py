"""Plays one scene with MCP servers in a process of its own: its servers and their end are its children."""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import uvloop

from ipc.messages import AgentSpec, Setup, ToolServer
from tests.waiting import soon
from worker import descendants, output_files, residents
from worker.errors import InputNeeded
from worker.mcp_servers import mcp_server
from worker.mcp_servers.server_tools import ServerTools

SERVER = str(Path(__file__).resolve().parents[1] / "tool_server.py")


def stdio(name: str, mode: str, **more: object) -> ToolServer:
    return ToolServer(name, ("/usr/bin/env", sys.executable, SERVER, mode), **more)  # type: ignore[arg-type]


async def opened(*servers: ToolServer, secrets: dict[str, str] | None = None) -> ServerTools:
    tools = ServerTools()
    await tools.set_up(Setup(AgentSpec("default", "builtin"), servers, secrets or {}), ())
    return tools


async def faults() -> object:
    mcp_server.START_SECONDS_MAX = 3.0
    absent = ToolServer("absent", ("/no/such/program",))
    refused = ToolServer("refused", url="http://127.0.0.1:9/mcp")
    bad = [stdio(mode, mode) for mode in ("mute", "garbage", "exits", "names", "noisy")]
    tools = await opened(absent, refused, *bad)
    return tools.take_notes(), tools.take_notes(), sorted(tools.make())


async def calls() -> object:
    server = stdio("s", "good", classes={"die": "idempotent"}, environment_from=("STUB_TOKEN",))
    tools = (await opened(server, secrets={"STUB_TOKEN": "t0"})).make()
    found = {name: tool.repeat for name, tool in tools.items()}
    told = [await tools["s__add"].run({"a": 1, "b": 2}, print), await tools["s__add"].run({"a": "x"}, print)]
    told.append(await tools["s__secret"].run({}, print))
    with tempfile.TemporaryDirectory() as folder:
        output_files.keep_in(folder)
        huge = await tools["s__huge"].run({}, print)
        whole = f"{folder}/{output_files.FOLDER}/1.txt"
        named = f"[cut: all of it is in {whole}; read it there]\n"
        kept = huge.text.startswith(named), os.stat(whole).st_size, len(huge.text) - len(named)
    return found, [(each.text, each.ok) for each in told], kept


async def deaths() -> object:
    tools = (await opened(stdio("s", "good"))).make()
    told = []
    for _ in range(5):
        told.append((await tools["s__die"].run({}, print)).text)
    return told, (await tools["s__add"].run({"a": 1, "b": 2}, print)).text


async def question() -> object:
    tools = (await opened(stdio("s", "good"))).make()
    book = tools["s__book"]
    try:
        await book.run({"to": "Rome"}, print)
    except InputNeeded as needed:
        asked = (needed.text, needed.choices)
    book.answers = ("window",)
    continued = (await book.run({"to": "Rome"}, print)).text
    book.answers = ("aisle",)
    again = (await book.run({"to": "Oslo"}, print)).text
    return asked, continued, again


async def attempt_ends() -> object:
    """The end of an attempt spares the server; one that it has dropped is ended."""
    tools = (await opened(stdio("s", "good"))).make()
    before = (await tools["s__where"].run({}, print)).text
    assert await descendants.end_all()
    after = (await tools["s__where"].run({}, print)).text
    (pid,) = residents.pids()
    os.kill(pid, signal.SIGKILL)
    await soon(lambda: not residents.pids())
    return before == after, before.split()[1], len(descendants.children())


async def over_http(port: str) -> object:
    server = ToolServer("h", url=f"http://127.0.0.1:{port}/mcp", headers_from={"Authorization": "TOKEN"})
    tools = (await opened(server, secrets={"TOKEN": "Bearer t1"})).make()
    return [
        (await tools["h__add"].run({"a": 1, "b": 2}, print)).text,
        (await tools["h__secret"].run({}, print)).text,
    ]


async def main(scene: str, *rest: str) -> None:
    descendants.take_in()
    print(json.dumps(await globals()[scene](*rest)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
