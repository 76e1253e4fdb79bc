"""The documents name what the code has: commands, keys, events, messages; and their links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermesctl.chat.keys import KEYS, Key
from hermesctl.chat.slash_commands import COMMANDS, Command
from hermesctl.main import hermesctl
from ipc import message_parts, messages, service_messages, stt_messages
from ipc.codec import VERSION
from supervisor.config.fields import AT_ONCE, keys_of
from supervisor.config.settings import TABLES
from supervisor.core.records import Record
from tests.house_rules import ROOT

DOCS = ROOT / "docs"
HEADINGS = {
    "agents": "[agents.NAME]",
    "budgets": "[budgets.SCOPE]",
    "mcp": "[mcp.NAME]",
    "sessions": '[sessions."PATTERN"]',
}
# Frames that a client sees in a stream beside the durable events.
FLEETING = ("delta",)


def _documents() -> list[Path]:
    return sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def _commands(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield f"{path} {name}"
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


def _event_types() -> set[str]:
    """Every record that is told has a type; records of records count too."""
    found: set[str] = set()
    waiting = [Record]
    while waiting:
        record = waiting.pop()
        waiting += record.__subclasses__()
        found |= {record.type} - {""}
    return found


def _structs() -> set[str]:
    kinds = (messages.Message, message_parts.Part)
    defined = [
        value
        for module in (messages, service_messages, stt_messages, message_parts)
        for value in vars(module).values()
    ]
    return {
        value.__name__
        for value in defined
        if isinstance(value, type) and issubclass(value, kinds) and value not in kinds
    }


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """(heading, first cell, second cell) of every table row that begins with code."""
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:].strip()
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            yield heading, cells[0].strip("`"), cells[1].strip("`")


def _toml(default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, list):
        return f"[{', '.join(map(_toml, default))}]"
    return f'"{default}"' if isinstance(default, str) else str(default).lower()


def _links(path: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            yield target


def test_readme_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make run" in text
    assert "make test" in text


@pytest.mark.parametrize("command", sorted(_commands(hermesctl, "hermesctl")))
def test_every_command_is_documented(command: str) -> None:
    assert re.search(re.escape(command) + r"(?![\w-])", (DOCS / "commands.md").read_text())


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_every_command_of_the_chat_is_documented(command: Command) -> None:
    arguments = command.arguments.replace("|", "\\|")
    line = f"{command.name} {arguments}".strip()
    assert f"| `{line}` |" in (DOCS / "chat.md").read_text()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_of_the_chat_is_documented(key: Key) -> None:
    assert f"| {key.name} |" in (DOCS / "chat.md").read_text()


def test_every_setting_is_documented_with_its_default() -> None:
    written = {
        (heading, key): default
        for heading, key, default in _rows((DOCS / "settings.md").read_text())
        if heading
    }
    known = {
        (HEADINGS.get(table, f"[{table}]"), name): _toml(key.default)
        for table, struct in TABLES.items()
        for name, (_, key) in keys_of(struct).items()
        if table != "models"  # "the keys of [model]"
    }
    assert written == known


def test_every_key_that_does_not_apply_at_once_is_documented_so() -> None:
    written = {
        (applies, key)
        for applies, keys in re.findall(
            r"^\| (new workers|new service|restart) \| (.*) \|$",
            (DOCS / "settings.md").read_text(),
            re.MULTILINE,
        )
        for key in re.findall(r"`([^`]+)`", keys)
    }
    known = {
        (key.applies, f"[{table}] {name}")
        for table, struct in TABLES.items()
        for name, (_, key) in keys_of(struct).items()
        if key.applies != AT_ONCE
    }
    assert written == known


@pytest.mark.parametrize("event", sorted({*_event_types(), *FLEETING}))
def test_every_event_is_documented(event: str) -> None:
    assert f"`{event}`" in (DOCS / "events.md").read_text()


def test_events_are_found_in_the_records() -> None:
    assert {
        "message.accepted",
        "turn.opened",
        "turn.done",
        "turn.interrupted",
        "turn.failed",
    } <= _event_types()


@pytest.mark.parametrize("struct", sorted(_structs()))
def test_every_wire_message_is_documented(struct: str) -> None:
    assert f"`{struct}`" in (DOCS / "protocol.md").read_text()


def test_the_version_of_the_protocol_is_documented() -> None:
    assert f"the protocol version (now **{VERSION}**)" in (ROOT / "docs" / "protocol.md").read_text()


def test_tags_are_documented_as_they_travel() -> None:
    rows = {(name, second) for _, name, second in _rows((DOCS / "protocol.md").read_text())}
    for struct in vars(messages).values():
        if (
            isinstance(struct, type)
            and issubclass(struct, messages.Message)
            and struct is not messages.Message
        ):
            tag = struct.__struct_config__.tag
            assert (struct.__name__, tag) in rows or f"`{struct.__name__}` (tag `{tag}`)" in (
                DOCS / "protocol.md"
            ).read_text()


@pytest.mark.parametrize("path", _documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    missing = [
        link
        for link in _links(path)
        if not (path.parent / link.partition("#")[0]).exists() and link[0] != "#"
    ]
    assert missing == []
