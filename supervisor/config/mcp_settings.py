"""[mcp.NAME] and mcp_file: the MCP servers that agents may use."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipc.message_parts import ToolClass, ToolServer
from supervisor.config.agent_settings import Agent
from supervisor.config.fields import NEW_WORKERS, TABLE, TEXTS, URL, VARIABLES, classes, key, maybe
from supervisor.config.toml_file import SettingsError, SettingsFile

# It begins the names of its tools, which have 64 characters at most.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_FILE_BYTES_MAX = 1024 * 1024
_KEY_REMEDY = "name the environment variable that holds it: env_from, or headers_from for a header"


@dataclass(frozen=True)
class McpServer:
    """[mcp.NAME]: a program in the cell, or a server at an address."""

    command: tuple[str, ...] = key("command", TEXTS, [], NEW_WORKERS)
    args: tuple[str, ...] = key("args", TEXTS, [], NEW_WORKERS)
    env: Mapping[str, str] = key("env", TABLE, {}, NEW_WORKERS)
    env_from: tuple[str, ...] = key("env_from", VARIABLES, [], NEW_WORKERS)
    url: str | None = key("url", maybe(URL), None, NEW_WORKERS)
    headers: Mapping[str, str] = key("headers", TABLE, {}, NEW_WORKERS)
    headers_from: Mapping[str, str] = key("headers_from", TABLE, {}, NEW_WORKERS)
    classes: Mapping[str, ToolClass] = key("class", classes(ToolClass), {}, NEW_WORKERS)

    def spec(self, name: str) -> ToolServer:
        """Return it as workers receive it: of secrets it has the names."""
        return ToolServer(
            name=name,
            command=(*self.command, *self.args),
            environment=dict(self.env),
            environment_from=self.env_from,
            url=self.url or "",
            headers=dict(self.headers),
            headers_from=dict(self.headers_from),
            classes=dict(self.classes),
        )

    @property
    def variables(self) -> frozenset[str]:
        """Return the environment variables that hold its secrets."""
        return frozenset({*self.env_from, *self.headers_from.values()})


def all_servers(
    source: SettingsFile, own: Mapping[str, McpServer]
) -> tuple[dict[str, McpServer], str | None]:
    """Return the servers of the file that mcp_file names, then those of hermes.toml; and its name."""
    _check(source, own)
    name = source.data.get("mcp_file")
    if name is None:
        return dict(own), None
    if not isinstance(name, str) or not name:
        raise source.error(("mcp_file",), "is no path", 'write mcp_file = "mcp.json" above all tables')
    return _read_file(source.path.parent / Path(name).expanduser()) | dict(own), name


def refuse_strangers(
    source: SettingsFile, agents: Mapping[str, Agent], servers: Mapping[str, McpServer]
) -> None:
    for name, agent in agents.items():
        for server in agent.mcp or ():
            if server not in servers:
                hint = f"add a table [mcp.{server}], or remove it from the list"
                raise source.error(("agents", name, "mcp"), f"names {server!r}, which is no server", hint)


def _check(source: SettingsFile, servers: Mapping[str, McpServer]) -> None:
    """Refuse faults that no single key shows."""
    for name, server in servers.items():
        path = ("mcp", name)
        if not _NAME.fullmatch(name):
            hint = "use letters, digits, - and _, 32 at most: it begins the names of its tools"
            raise source.error(path, "has a name that cannot be used", hint)
        if bool(server.command) == (server.url is not None):
            what = "has both command and url" if server.command else "has neither command nor url"
            raise source.error(path, what, 'write command = ["program"], or url = "http://…"')
        for header in server.headers:
            if header.lower() in ("authorization", "x-api-key"):
                raise source.error((*path, "headers"), f"holds a key in {header}", _KEY_REMEDY)


def _read_file(path: Path) -> dict[str, McpServer]:
    """Return the servers of a file with `mcpServers`, as other hosts write it; unknown keys are ignored."""

    def fault(what: str, hint: str) -> SettingsError:
        return SettingsError(f"{path}, named by mcp_file, {what}", hint)

    try:
        with path.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
        found: Any = json.loads(content)["mcpServers"]
        servers = {name: _server(each) for name, each in found.items() if not each.get("disabled")}
    except OSError as error:
        raise fault(f"cannot be read: {error.strerror}", "correct the path, or remove mcp_file") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        hint = 'write {"mcpServers": {"NAME": {"command": "program", "args": []}}}, or url instead of command'
        raise fault("holds no mcpServers that can be used", hint) from None
    for name, server in servers.items():
        if not _NAME.fullmatch(name) or bool(server.command) == (server.url is not None):
            hint = "give it a name of letters, digits, - and _, and either command or url"
            raise fault(f"has a server {name!r} that cannot be used", hint)
    return servers


def _server(written: Mapping[str, Any]) -> McpServer:
    command = written.get("command")
    url = written.get("url")
    return McpServer(
        command=TEXTS.read([command] if command is not None else []),
        args=TEXTS.read(written.get("args", [])),
        env=TABLE.read(written.get("env", {})),
        url=URL.read(url) if url is not None else None,
        headers=TABLE.read(written.get("headers", {})),
    )
