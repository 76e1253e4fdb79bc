"""The rules of the house as functions, a file in, complaints out; test_house_rules.py applies them."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("ipc", "supervisor", "worker", "stt_service", "model_service", "client", "gateway", "hermesctl")
ROOMS = (*PRODUCT, "tests", "bench")

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
LINE_CHARACTERS_MAX = 110

# A room of the product may import itself and these rooms.
_MAY_IMPORT = {"ipc": frozenset[str]()} | {room: frozenset({"ipc"}) for room in PRODUCT[1:]}
_MAY_IMPORT |= {room: frozenset({"ipc", "client"}) for room in ("gateway", "hermesctl")}
# The one module beyond these rooms: hermesctl manages tokens while no service runs.
_SHARED_MODULES = {"hermesctl": frozenset({"gateway.tokens"})}
# Third parties of which only these places know.
_ONLY_IN = {
    "zmq": "ipc/sockets.py",
    "openai": "worker/model.py",
    "sqlite3": ("supervisor/journal/", "gateway/tokens.py"),
    "sqlite_utils": "supervisor/journal/",
    "psycopg": "supervisor/journal/postgres/",
    "xllamacpp": "model_service/llama.py",
    "faster_whisper": "stt_service/whisper.py",
    "opentelemetry": "hermesctl/otel.py",
    "pyseccomp": "supervisor/processes/seccomp.py",
}
_NOT_IN_SUPERVISOR = frozenset(
    {"aiohttp", "anthropic", "h11", "http", "httpcore", "httptools", "httpx", "openai", "requests", "ssl"}
    | {"starlette", "urllib.request", "urllib3", "uvicorn", "websockets", "wsproto"}
)
_NOT_IN_CORE = frozenset(
    {
        "asyncio",
        "datetime",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "select",
    }
    | {"selectors", "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time"}
    | {"urllib", "uuid"}
)
_ENGINE_READS = ("core", "clock", "enrichment")
_ACTS = frozenset({"open", "print", "input", "exec", "eval"})
_CORE_READERS = (
    "app",
    "wiring",
    "clients",
    "config/applying",
    "config/derived",
    "core",
    "decider",
    "engine",
    "enrichment",
    "lookahead",
    "event_queue",
    "event_sink",
    "handoff",
    "hosts",
    "journal",
    "llm/model_source",
    "performer",
    "processes",
    "stt",
    "telemetry",
    "workers",
)
# The modules of the loop that decides, and what each may import of ours. The one with a clock has asyncio.
_ENGINE = {
    "supervisor/engine.py": (*_ENGINE_READS, "event_queue", "lookahead", "decider", "performer"),
    "supervisor/event_queue.py": ("core",),
    "supervisor/decider.py": ("core", "enrichment", "event_queue", "lookahead"),
    "supervisor/enrichment.py": ("core",),
    "supervisor/performer.py": ("core", "decider"),
}
_CATCHES_ALL = (
    "worker/attempt.py",
    "worker/agents/agent_entry.py",
    "worker/agents/agent_thread.py",
    "hermesctl/main.py",
    "supervisor/containment.py",
    "gateway/asgi.py",
)
_BANNED_WORDS = frozenset(
    ["util", "utils", "helper", "helpers", "manager", "managers", "base", "bases", "mixin", "mixins"]
)
# Put together from halves, or this file would break its own rules.
_UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
_ELSEWHERE = re.compile(
    r"(?<![\w.~])/(?:wo" + r"rk|ro" + r"ot|tmp/h" + r"s)(?=[/\s\"'`)]|$)|py" + r"pi\.org|python" + r"hosted"
)


@dataclass(frozen=True)
class Source:
    """One file of the tree, by its path from the root."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree: most rules look through it."""
        return tuple(ast.walk(self.tree))

    @property
    def room(self) -> str:
        return PurePosixPath(self.path).parts[0]

    @property
    def is_test(self) -> bool:
        name = PurePosixPath(self.path).name
        return self.room == "tests" and (name.startswith("test_") or name == "conftest.py")

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """(line, full name) of everything imported, inside functions too; relative imports made absolute."""
        return tuple(_imports(self.nodes, PurePosixPath(self.path)))

    def imports_below(self, module: str) -> Iterator[tuple[int, str]]:
        return ((line, name) for line, name in self.imports if _is_below(name, module))


Rule = Callable[[Source], Iterator[str]]


def python_sources() -> list[Source]:
    """Every Python file of the rooms that exist."""
    return [_source(path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def written_sources() -> list[Source]:
    """Every file that people wrote: code, documents, settings and scripts."""
    endings = ("py", "md", "toml", "sql", "txt", "service", "sh", "html", "js", "css", "yaml")
    found = {
        path for room in (*ROOMS, "docs", "systemd", "deploy", ".ci") for path in (ROOT / room).rglob("*")
    }
    found |= set(ROOT.glob("*.md")) | set(ROOT.glob("*.toml")) | {ROOT / "Makefile", ROOT / "LICENSE"}
    wanted = (path for path in found if path.is_file() and "__pycache__" not in path.parts)
    return [_source(path) for path in sorted(wanted) if path.suffix[1:] in ("", *endings)]


def rooms_keep_apart(source: Source) -> Iterator[str]:
    """`ipc` imports nothing of ours; every other room only `ipc` and itself; tests and bench are free.

    The two clients of the supervisor import `client` too, and share the store of tokens.
    """
    allowed = _MAY_IMPORT.get(source.room)
    shared = _SHARED_MODULES.get(source.room, frozenset())
    for line, name in source.imports:
        room = name.partition(".")[0]
        if allowed is None or room not in ROOMS or room == source.room or room in allowed:
            continue
        if not any(_is_below(name, module) for module in shared):
            yield f"line {line}: {source.room} must not import {name}"


def wire_stays_small(source: Source) -> Iterator[str]:
    """`ipc` needs the standard library, msgspec and pyzmq, so that any Python can join."""
    for line, name in source.imports if source.room == "ipc" else ():
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("ipc", "msgspec", "zmq"):
            yield f"line {line}: ipc must not import {name}"


def one_place_knows(source: Source) -> Iterator[str]:
    """zmq, openai, sqlite and the model libraries are each imported in one place of the product."""
    for module, found in _ONLY_IN.items() if source.room in PRODUCT else ():
        places = (found,) if isinstance(found, str) else found
        if not any(
            source.path == place or (place[-1] == "/" and source.path.startswith(place)) for place in places
        ):
            for line, name in source.imports_below(module):
                yield f"line {line}: only {' and '.join(places)} imports {module}, found {name}"
    for line, name in source.imports_below("zmq.asyncio"):
        yield f"line {line}: {name} costs five times the CPU of a drained raw socket"


def host_speaks_no_http(source: Source) -> Iterator[str]:
    """No HTTP, TLS or model code in the supervisor, and no clock but its own."""
    if source.room != "supervisor":
        return
    for line, name in source.imports:
        if any(_is_below(name, module) for module in _NOT_IN_SUPERVISOR):
            yield f"line {line}: the supervisor must not import {name}"
        if _is_below(name, "time") and source.path != "supervisor/clock.py":
            yield f"line {line}: only supervisor/clock.py imports time"


def core_is_pure(source: Source) -> Iterator[str]:
    """The rules import the standard library only, without clock, chance, log or the world."""
    if not source.path.startswith("supervisor/core/"):
        return
    for line, name in source.imports:
        top = name.partition(".")[0]
        ours = _is_below(name, "supervisor.core")
        if not ours and (top not in sys.stdlib_module_names or top in _NOT_IN_CORE):
            yield f"line {line}: the core must not import {name}"
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ACTS:
            yield f"line {node.lineno}: the core must not call {node.func.id}()"
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"line {node.lineno}: the core must not wait"


def engine_knows_the_core_only(source: Source) -> Iterator[str]:
    """The loop that decides knows its own modules; all else it meets through the protocols it declares."""
    for line, name in source.imports if source.path in _ENGINE else ():
        top = name.partition(".")[0]
        known = _ENGINE[source.path]
        ours = any(_is_below(name, room) for room in ROOMS)
        if ours and not any(_is_below(name, f"supervisor.{module}") for module in known):
            yield f"line {line}: {source.path} must not import {name}"
        if not ours and (top not in sys.stdlib_module_names or (top == "asyncio" and "clock" not in known)):
            yield f"line {line}: {source.path} must not import {name}"


def one_class_is_the_engine(source: Source) -> Iterator[str]:
    """What a module asks of the engine is a Protocol of supervisor/event_sink.py, under a name of its own."""
    if not source.path.startswith("supervisor/") or source.path == "supervisor/engine.py":
        return
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.name == "Engine":
            yield f"line {node.lineno}: Engine is the class in supervisor/engine.py"


def nobody_imports_app(source: Source) -> Iterator[str]:
    """Wiring is the outermost layer; only `python -m supervisor` starts it. Few know the core."""
    if source.room not in PRODUCT:
        return
    if source.path not in ("supervisor/app.py", "supervisor/entry.py"):
        for line, name in source.imports_below("supervisor.app"):
            yield f"line {line}: nobody imports {name}"
    inner = source.path.removeprefix("supervisor/").removesuffix(".py")
    if source.room == "supervisor" and not any(
        inner == reader or inner.startswith(f"{reader}/") for reader in _CORE_READERS
    ):
        for line, name in source.imports_below("supervisor.core"):
            yield f"line {line}: {source.path} is not one of those that read {name}"


def files_have_one_subject(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        yield f"{lines} lines: over {FILE_LINES_MAX} a file has two subjects"


def functions_fit_the_eye(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"line {node.lineno}: {node.name} has {lines} lines, the limit is {FUNCTION_LINES_MAX}"


def lines_fit_the_page(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if len(line) > LINE_CHARACTERS_MAX:
            yield f"line {number}: {len(line)} characters, the limit is {LINE_CHARACTERS_MAX}"


def names_say_something(source: Source) -> Iterator[str]:
    """No module, folder or class is called after nothing in particular."""
    for part in PurePosixPath(source.path).with_suffix("").parts:
        if _BANNED_WORDS & set(part.lower().split("_")):
            yield f"{part} says nothing: name the file after its subject"
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            words = {word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", node.name)}
            if _BANNED_WORDS & words:
                yield f"line {node.lineno}: {node.name} says nothing: name the class after its subject"


def modules_introduce_themselves(source: Source) -> Iterator[str]:
    if not (ast.get_docstring(source.tree) or "").strip():
        yield "the module opens without a sentence that says what it is"


def errors_are_caught_by_name(source: Source) -> Iterator[str]:
    """Catching everything is for `__main__`, for what surrounds the agent, and for the containment."""
    if source.path in _CATCHES_ALL or source.path.endswith("/__main__.py"):
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught: list[ast.AST | None] = [None] if node.type is None else list(ast.walk(node.type))
        elif isinstance(node, ast.Call) and _called(node) == "suppress":
            caught = list(node.args)
        else:
            continue
        if isinstance(node, ast.ExceptHandler) and isinstance(node.body[-1], ast.Raise):
            continue  # it cleans up and lets the error go on
        names = {expression.id for expression in caught if isinstance(expression, ast.Name)}
        if None in caught or names & {"Exception", "BaseException"}:
            yield f"line {node.lineno}: catch the errors that can happen, by name"


def a_test_never_sleeps(source: Source) -> Iterator[str]:
    """A test waits for a condition (tests/waiting.py); `asyncio.sleep(0)` only lets others run."""
    for node in source.nodes if source.is_test else ():
        if isinstance(node, ast.Call) and _called(node) == "sleep":
            zero = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if not zero:
                yield f"line {node.lineno}: wait for a condition instead of sleeping"


def a_test_is_a_sentence(source: Source) -> Iterator[str]:
    """`test_` and at least two words that say what holds; a file of tests has some."""
    if not source.is_test or source.path.endswith("conftest.py"):
        return
    found = 0
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found += 1
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found += 1
            if len(re.findall(r"_[a-z0-9]*[a-z][a-z0-9]*", node.name)) < 2:
                yield f"line {node.lineno}: {node.name} does not say what holds"
    # Hypothesis machines are tests under another name.
    if not found and "TestCase" not in source.text:
        yield "a file of tests without a test"


def nothing_is_left_for_later(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if _UNFINISHED.search(line):
            yield f"line {number}: do it or leave it out"


def nothing_names_a_machine(source: Source) -> Iterator[str]:
    """No path of the machine it was written on, and no package registry's address."""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if found := _ELSEWHERE.search(line):
            yield f"line {number}: {found[0]} holds on one machine only"


PYTHON_RULES: tuple[Rule, ...] = (
    rooms_keep_apart,
    wire_stays_small,
    one_place_knows,
    host_speaks_no_http,
    core_is_pure,
    engine_knows_the_core_only,
    one_class_is_the_engine,
    nobody_imports_app,
    files_have_one_subject,
    functions_fit_the_eye,
    lines_fit_the_page,
    names_say_something,
    modules_introduce_themselves,
    errors_are_caught_by_name,
    a_test_never_sleeps,
    a_test_is_a_sentence,
)
TEXT_RULES: tuple[Rule, ...] = (nothing_is_left_for_later, nothing_names_a_machine)


def _source(path: Path) -> Source:
    return Source(path.relative_to(ROOT).as_posix(), path.read_text())


def _imports(nodes: Iterable[ast.AST], path: PurePosixPath) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = path.parts[: -node.level] if node.level else ()
            origin = ".".join((*above, *((node.module,) if node.module else ())))
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def _is_below(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


def _called(node: ast.Call) -> str:
    """The name of a function, without its module."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")
