"""[agents.NAME] allow, ask and deny: checks of the tools that the rules name."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import get_args

from supervisor.config.agent_settings import GATED_KINDS, Agent, ToolName
from supervisor.config.fields import RULE
from supervisor.config.toml_file import SettingsFile

# The kinds of tools in the Agent Client Protocol.
_ACP_KINDS = (
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
)  # fmt: skip
_TOOLS = {"builtin": get_args(ToolName), "acp": _ACP_KINDS}


def refuse_useless_rules(source: SettingsFile, agents: Mapping[str, Agent], servers: Collection[str]) -> None:
    """A rule about a tool that does not exist is a spelling mistake, and would deny nothing."""
    for name, agent in agents.items():
        for key in ("allow", "ask", "deny", "otherwise"):
            path = ("agents", name, key)
            if agent.kind not in GATED_KINDS and source.has(*path):
                hint = "remove the key; an agent of this kind asks for itself, as with context.approve"
                raise source.error(path, f'is of no use with kind = "{agent.kind}"', hint)
            for rule in getattr(agent, key) if key != "otherwise" else ():
                found = RULE.fullmatch(rule)
                if found is not None and not _exists(found[1], agent.kind, servers):
                    known = ", ".join(_TOOLS[agent.kind]) + (
                        ", or SERVER__tool of an MCP server" if agent.kind == "builtin" else ""
                    )
                    raise source.error(path, f'names "{found[1]}", which is no tool', f"use one of {known}")


def _exists(tool: str, kind: str, servers: Collection[str]) -> bool:
    if kind not in _TOOLS:
        return True  # hermes-agent knows its tools; the worker refuses a rule about any other one
    if any(fnmatchcase(known, tool) for known in _TOOLS[kind]):
        return True
    server, separator, _ = tool.partition("__")
    return kind == "builtin" and bool(separator) and any(fnmatchcase(each, server) for each in servers)
