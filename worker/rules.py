"""The rules of an agent about its tool calls: `[agents.NAME] allow, ask, deny, otherwise`.

An entry is `tool` or `tool(pattern)`; both parts may have the wildcards of fnmatch. The pattern is compared
with the main argument of the call: the command of a shell, the path of a file, the address of a fetch, and
the JSON of all arguments for any other tool. Deny comes before ask, and ask before allow.

The lists are read in opposite directions when a call has several forms or parts. An entry of `deny` or `ask`
holds if it matches any form: the line and each command in it, the path as given and as an absolute one.
Entries of `allow` must cover everything: each command of the line. Where the parts of a call are not
certain, no pattern allows it, and a pattern of `deny` or `ask` about its tool makes it ask.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from worker import command_lines
from worker.errors import AgentError
from worker.host_danger import danger

Decision = Literal["allow", "ask", "deny"]

_ENTRY = re.compile(r"([^()\s]+)(?:\((.+)\))?", re.DOTALL)
_PATH_NAMES = ("path", "file_path", "filePath")
# Of our tools and of ACP agents, which name a path in several ways.
_MAIN_NAMES: Mapping[str, tuple[str, ...]] = {
    "shell": ("command",),
    "execute": ("command",),
    "fetch": ("url",),
    # Of hermes-agent.
    "terminal": ("command",),
    **dict.fromkeys(("read_file", "write_file", "patch"), _PATH_NAMES),
    **dict.fromkeys(("read", "write", "edit", "delete"), _PATH_NAMES),
}


@dataclass(frozen=True, slots=True)
class _Call:
    """`forms`: texts of which one is enough to be denied. `parts`: those that must all be allowed.

    Without `parts` nothing certain is known of them. `hides`: the forms may not show all that it does.
    """

    forms: tuple[str, ...]
    parts: tuple[str, ...]
    hides: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    tool: str
    pattern: str | None

    def is_about(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def matches(self, tool: str, text: str) -> bool:
        return self.is_about(tool) and (self.pattern is None or fnmatchcase(text, self.pattern))


class Rules:
    """`otherwise` is the decision about a call that no entry matches."""

    def __init__(
        self,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
        otherwise: Decision = "allow",
    ) -> None:
        self._allow, self._ask, self._deny = map(_read, (allow, ask, deny))
        self._otherwise: Decision = otherwise

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Rules":
        """The rules among the options of an agent; the settings give all of them."""
        given = {name: options[name] for name in ("allow", "ask", "deny", "otherwise") if name in options}
        return cls(**given)

    def without_tool(self, tools: Collection[str]) -> str:
        """Returns the name in a rule that is none of these tools; "" when there is no such rule."""
        rules = (*self._deny, *self._ask, *self._allow)
        return next((rule.tool for rule in rules if not any(map(rule.is_about, tools))), "")

    def decide(self, tool: str, arguments: Mapping[str, Any]) -> Decision:
        if danger(tool, arguments):
            return "deny"
        call = _call(tool, arguments)
        if _any(self._deny, tool, call.forms):
            return "deny"
        if _begins_nothing(tool, arguments):
            return "allow"
        if _any(self._ask, tool, call.forms):
            return "ask"
        decision = "allow" if self._covers(tool, call) else self._otherwise
        if decision == "allow" and call.hides and self._has_patterns_about(tool):
            return "ask"
        return decision

    def _covers(self, tool: str, call: _Call) -> bool:
        if any(rule.is_about(tool) and rule.pattern is None for rule in self._allow):
            return True
        return bool(call.parts) and all(_any(self._allow, tool, (part,)) for part in call.parts)

    def _has_patterns_about(self, tool: str) -> bool:
        restricting = (*self._deny, *self._ask)
        return any(rule.is_about(tool) and rule.pattern is not None for rule in restricting)


def main_argument(tool: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the argument that the rules look at, as a text, and the other arguments."""
    name, text = _main(tool, arguments)
    if name:
        return text, {other: each for other, each in arguments.items() if other != name}
    return text, {}


def _main(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the text of the main argument; the JSON of all, without a name, where there is none."""
    found = [name for name in _MAIN_NAMES.get(tool, ()) if name in arguments]
    if len(found) == 1 and (text := command_lines.line_of(arguments[found[0]])) is not None:
        return found[0], text
    return "", json.dumps(arguments, ensure_ascii=False, default=str)


def _call(tool: str, arguments: Mapping[str, Any]) -> _Call:
    name, text = _main(tool, arguments)
    match name:
        case "" if tool in _MAIN_NAMES:
            return _Call((text,), (), hides=True)
        case "":
            return _Call((text,), (text,))
        case "command":
            line = command_lines.split(text)
            if line is None:
                return _Call((text,), (), hides=True)
            return _Call((text, *line.commands, *line.unquoted), line.commands, line.has_runner)
        case "url":
            return _Call((text, _plain_url(text)), (text,))
        case _:
            path, absolute = os.path.normpath(text), os.path.abspath(os.path.expanduser(text))
            is_plain = ".." not in text.split("/") and not text.startswith("~")
            return _Call((text, path, absolute), (path,) if is_plain else ())


def _plain_url(text: str) -> str:
    """The address with its scheme and host in lower case, as the network takes them."""
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return text
    return parts._replace(netloc=parts.netloc.lower()).geturl()


def _begins_nothing(tool: str, arguments: Mapping[str, Any]) -> bool:
    """True for a question to a person, and for reading and stopping a command that runs."""
    return tool == "ask" or (tool == "shell" and not arguments.get("command"))


def _any(rules: Sequence[_Rule], tool: str, texts: Sequence[str]) -> bool:
    return any(rule.matches(tool, text) for rule in rules for text in texts)


def _read(entries: Sequence[str]) -> tuple[_Rule, ...]:
    """Raises for what is no entry, which the settings refuse: a denial must not get lost."""
    return tuple(_rule(entry) for entry in entries)


def _rule(entry: str) -> _Rule:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise AgentError(f"{entry!r} is no rule", 'write "tool" or "tool(pattern)" in hermes.toml')
    return _Rule(found[1], found[2])
