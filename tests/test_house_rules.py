"""The tree keeps the rules of the house, and every rule can say no."""

from collections.abc import Callable

import pytest

from tests.house_rules import (
    FILE_LINES_MAX,
    FUNCTION_LINES_MAX,
    LINE_CHARACTERS_MAX,
    PYTHON_RULES,
    TEXT_RULES,
    Rule,
    Source,
    a_test_is_a_sentence,
    a_test_never_sleeps,
    core_is_pure,
    engine_knows_the_core_only,
    errors_are_caught_by_name,
    files_have_one_subject,
    functions_fit_the_eye,
    host_speaks_no_http,
    lines_fit_the_page,
    modules_introduce_themselves,
    names_say_something,
    nobody_imports_app,
    nothing_is_left_for_later,
    nothing_names_a_machine,
    one_class_is_the_engine,
    one_place_knows,
    python_sources,
    rooms_keep_apart,
    wire_stays_small,
    written_sources,
)


def _complaints(rule: Rule, sources: list[Source]) -> str:
    return "\n".join(f"{source.path} {complaint}" for source in sources for complaint in rule(source))


@pytest.fixture(scope="module")
def python_files() -> list[Source]:
    """Parsed once for all rules."""
    return python_sources()


@pytest.fixture(scope="module")
def written_files() -> list[Source]:
    return written_sources()


@pytest.mark.parametrize("rule", PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_python_files_keep_the_rule(python_files: list[Source], rule: Rule) -> None:
    assert _complaints(rule, python_files) == ""


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_written_files_keep_the_rule(written_files: list[Source], rule: Rule) -> None:
    assert _complaints(rule, written_files) == ""


def test_the_tree_is_really_read() -> None:
    paths = {source.path for source in python_sources()}
    assert {"ipc/sockets.py", "supervisor/config/settings.py", "tests/test_house_rules.py"} <= paths
    assert {"Makefile", "pyproject.toml", "docs/settings.md"} <= {source.path for source in written_sources()}


BAD: list[tuple[Rule, str, str]] = [
    (rooms_keep_apart, "ipc/x.py", "import supervisor.config.settings"),
    (rooms_keep_apart, "worker/x.py", "def f():\n    from supervisor.core import model"),
    (rooms_keep_apart, "hermesctl/x.py", "from worker import model"),
    (rooms_keep_apart, "supervisor/x.py", "from worker.agents import builtin"),
    (wire_stays_small, "ipc/x.py", "import psutil"),
    (one_place_knows, "supervisor/x.py", "import zmq"),
    (one_place_knows, "ipc/codec.py", "from zmq import Context"),
    (one_place_knows, "ipc/sockets.py", "import zmq.asyncio"),
    (one_place_knows, "worker/attempt.py", "from openai import AsyncOpenAI"),
    (one_place_knows, "supervisor/clients/subscriptions.py", "import sqlite3"),
    (one_place_knows, "hermesctl/x.py", "import sqlite_utils"),
    (host_speaks_no_http, "supervisor/x.py", "from urllib.request import urlopen"),
    (host_speaks_no_http, "supervisor/services/x.py", "import httpx"),
    (host_speaks_no_http, "supervisor/x.py", "import ssl"),
    (host_speaks_no_http, "supervisor/engine.py", "from time import monotonic"),
    (core_is_pure, "supervisor/core/x.py", "import random"),
    (core_is_pure, "supervisor/core/x.py", "import msgspec"),
    (core_is_pure, "supervisor/core/x.py", "from ipc import messages"),
    (core_is_pure, "supervisor/core/x.py", "from ..settings import load"),
    (core_is_pure, "supervisor/core/x.py", "def f():\n    return open('x')"),
    (core_is_pure, "supervisor/core/x.py", "async def f(): ..."),
    (engine_knows_the_core_only, "supervisor/engine.py", "from supervisor.journal import journal"),
    (engine_knows_the_core_only, "supervisor/engine.py", "from supervisor import feed"),
    (engine_knows_the_core_only, "supervisor/engine.py", "import msgspec"),
    (one_class_is_the_engine, "supervisor/x.py", "class Engine(Protocol): ..."),
    (nobody_imports_app, "supervisor/engine.py", "from supervisor.app import App"),
    (nobody_imports_app, "supervisor/clients/control.py", "from .. import app"),
    (nobody_imports_app, "supervisor/config/settings.py", "from supervisor.core.state import BusyMode"),
    (files_have_one_subject, "ipc/x.py", "x = 1\n" * (FILE_LINES_MAX + 1)),
    (functions_fit_the_eye, "ipc/x.py", "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX),
    (lines_fit_the_page, "ipc/x.py", "#" * (LINE_CHARACTERS_MAX + 1)),
    (names_say_something, "worker/utils.py", ""),
    (names_say_something, "worker/socket_helpers/x.py", ""),
    (names_say_something, "worker/x.py", "class TurnManager: ..."),
    (names_say_something, "worker/x.py", "class BaseAgent: ..."),
    (modules_introduce_themselves, "worker/x.py", "import os"),
    (modules_introduce_themselves, "worker/x.py", '"""  """'),
    (errors_are_caught_by_name, "worker/x.py", "try: ...\nexcept: ..."),
    (errors_are_caught_by_name, "worker/x.py", "try: ...\nexcept (OSError, Exception): ..."),
    (errors_are_caught_by_name, "supervisor/x.py", "try: ...\nexcept BaseException as e: ..."),
    (errors_are_caught_by_name, "supervisor/x.py", "with contextlib.suppress(Exception): ..."),
    (a_test_never_sleeps, "tests/test_x.py", "time.sleep(0.1)"),
    (a_test_never_sleeps, "tests/core/test_x.py", "async def f():\n    await asyncio.sleep(delay)"),
    (a_test_never_sleeps, "tests/conftest.py", "from time import sleep\nsleep(1)"),
    (a_test_is_a_sentence, "tests/test_x.py", "def test_1(): ..."),
    (a_test_is_a_sentence, "tests/test_x.py", "def test_it(): ..."),
    (a_test_is_a_sentence, "tests/test_x.py", "def check_something(): ..."),
    (nothing_is_left_for_later, "docs/x.md", "a line\n# TO" + "DO: more"),
    (nothing_is_left_for_later, "ipc/x.py", "# FIX" + "ME"),
    (nothing_names_a_machine, "docs/x.md", "see /wo" + "rk/main"),
    (nothing_names_a_machine, "Makefile", "cd /ro" + "ot/x"),
    (nothing_names_a_machine, "pyproject.toml", "https://py" + "pi.org/simple"),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD, ids=lambda value: getattr(value, "__name__", None))
def test_the_rule_says_no(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule(Source(path, text)))) >= 1


GOOD: list[tuple[Rule, str, str]] = [
    (rooms_keep_apart, "worker/x.py", "from ipc.messages import Delta\nfrom worker.model import ask"),
    (rooms_keep_apart, "tests/x.py", "from supervisor.app import App"),
    (one_place_knows, "ipc/sockets.py", "import zmq"),
    (one_place_knows, "supervisor/journal/load.py", "import sqlite3"),
    (host_speaks_no_http, "supervisor/clock.py", "import time"),
    (host_speaks_no_http, "worker/model.py", "import time, httpx"),
    (
        core_is_pure,
        "supervisor/core/x.py",
        "import heapq\nfrom supervisor.core import model\nfrom . import turns",
    ),
    (
        engine_knows_the_core_only,
        "supervisor/engine.py",
        "import asyncio\nfrom supervisor.core.decide import decide",
    ),
    (one_class_is_the_engine, "supervisor/engine.py", "class Engine: ..."),
    (nobody_imports_app, "supervisor/entry.py", "from supervisor.app import App"),
    (nobody_imports_app, "supervisor/journal/load.py", "from supervisor.core.state import State"),
    (functions_fit_the_eye, "ipc/x.py", "def f():\n" + "    x = 1\n" * (FUNCTION_LINES_MAX - 1)),
    (names_say_something, "worker/model.py", "class Database: ..."),
    (errors_are_caught_by_name, "worker/attempt.py", "try: ...\nexcept Exception: ..."),
    (errors_are_caught_by_name, "supervisor/__main__.py", "try: ...\nexcept Exception: ..."),
    (errors_are_caught_by_name, "ipc/x.py", "try: ...\nexcept BaseException:\n    close()\n    raise"),
    (errors_are_caught_by_name, "ipc/x.py", "try: ...\nexcept (OSError, ValueError): ..."),
    (a_test_never_sleeps, "tests/test_x.py", "await_(asyncio.sleep(0))"),
    (a_test_never_sleeps, "tests/fake_model.py", "time.sleep(0.1)"),
    (a_test_is_a_sentence, "tests/test_x.py", "def test_a7_tool_is_killed(): ..."),
    (nothing_names_a_machine, "docs/x.md", "the network of workers, docs/work/ and ~/root"),
]


@pytest.mark.parametrize(("rule", "path", "text"), GOOD, ids=lambda value: getattr(value, "__name__", None))
def test_the_rule_says_yes(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text))) == []


def test_every_rule_has_a_case_it_refuses() -> None:
    refused: set[Callable[..., object]] = {rule for rule, _, _ in BAD}
    assert refused == {*PYTHON_RULES, *TEXT_RULES}
