"""Types of the values in hermes.toml: each states what it accepts and refuses the rest by ValueError."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args
from urllib.parse import parse_qs, urlsplit

_Value = TypeVar("_Value")

# A rule about tool calls: a tool and, in parentheses, a pattern for its main argument.
RULE = re.compile(r"([A-Za-z0-9_*?-]{1,64})(?:\((.+)\))?", re.DOTALL)

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_UNIT_SECONDS = (86400.0, 3600.0, 60.0, 1.0)
_SIZE = re.compile(r"(\d+) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_UNIT_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
# Ten years: a longer duration is a typing error, and this bound keeps every sum of times from overflowing.
_SECONDS_MAX = 10 * 365 * 86400.0


@dataclass(frozen=True)
class Reading(Generic[_Value]):
    """One type of value. `wants` completes the sentence "write …"."""

    wants: str
    read: Callable[[object], _Value]


# When a change of a key takes effect, by `hermesctl reload`.
AT_ONCE = "at once"
NEW_WORKERS = "new workers"
NEW_SERVICE = "new service"
AFTER_RESTART = "restart"


@dataclass(frozen=True)
class Key:
    """A key of hermes.toml: its name, its default in TOML terms, and its type."""

    name: str
    default: object
    reading: Reading[Any]
    applies: str = AT_ONCE


def key(name: str, reading: Reading[_Value], default: object = None, applies: str = AT_ONCE) -> _Value:
    """Return a dataclass field that is read from the key `name`; `default` is written as in the file."""
    value = None if default is None else reading.read(default)
    metadata = {"key": Key(name, default, reading, applies)}
    # A table as a default would be shared by all instances, which dataclasses refuse.
    field: Any = (
        dataclasses.field(default_factory=dict, metadata=metadata)
        if isinstance(value, dict)
        else dataclasses.field(default=value, metadata=metadata)
    )
    chosen: _Value = field
    return chosen


def keys_of(table: type) -> dict[str, tuple[str, Key]]:
    """Return every key of a table's dataclass: name in the file -> (attribute, Key)."""
    found = {}
    for field in dataclasses.fields(table):
        if "key" in field.metadata:
            found[field.metadata["key"].name] = (field.name, field.metadata["key"])
    return found


def inner_table(name: str, kind: type[_Value]) -> _Value:
    """Return a dataclass field that is read from a table of that name inside the dataclass's own table."""
    field: Any = dataclasses.field(default=kind(), metadata={"table": (name, kind)})
    chosen: _Value = field
    return chosen


def tables_of(kind: type) -> dict[str, tuple[str, type]]:
    """Return every inner table of a table's dataclass: name in the file -> (attribute, its dataclass)."""
    found = {}
    for field in dataclasses.fields(kind):
        if "table" in field.metadata:
            name, inner = field.metadata["table"]
            found[name] = (field.name, inner)
    return found


def whole(at_least: int, at_most: int = 1_000_000) -> Reading[int]:
    """A whole number; the upper bound catches typing errors before they fill a machine."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
            raise ValueError
        return value

    return Reading(f"a whole number from {at_least} to {at_most}", read)


def at_least(seconds: int) -> Reading[float]:
    """A duration with a lower bound."""

    def read(value: object) -> float:
        duration = _read_duration(value)
        if duration < seconds:
            raise ValueError
        return duration

    return Reading(f'a duration of at least {seconds} s, such as "{seconds}s" or "1m"', read)


def maybe(reading: Reading[_Value]) -> Reading[_Value | None]:
    """The same type for a key that may be absent."""
    return Reading(reading.wants, reading.read)


def one_of(literal: Any) -> Reading[Any]:
    """One of the words of a Literal type."""
    words = get_args(literal)

    def read(value: object) -> object:
        if value not in words:
            raise ValueError
        return value

    return Reading("one of " + ", ".join(f'"{word}"' for word in words), read)


def some_of(literal: Any) -> Reading[tuple[str, ...]]:
    """A list of words of a Literal type, each at most once; it may be empty."""
    words = get_args(literal)

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or any(value.count(each) > 1 or each not in words for each in value):
            raise ValueError
        return tuple(value)

    return Reading("a list with any of " + ", ".join(f'"{word}"' for word in words) + ", or []", read)


def _read_positive(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1000:
        raise ValueError
    return float(value)


def _read_price(value: object) -> float:
    # A higher number is not the price of tokens.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1_000_000:
        raise ValueError
    return float(value)


def _read_cost(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000_000_000:
        raise ValueError
    return float(value)


def _read_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError
    return value


def _read_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(map(_read_text, value))


def _read_paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(dict.fromkeys(map(_read_path, value)))


def _read_folders(value: object) -> tuple[str, ...]:
    folders = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(map(_read_text, folders)))


def _read_path(value: object) -> str:
    try:
        path = Path(_read_text(value)).expanduser()
    except RuntimeError:  # no user has that home
        raise ValueError from None
    # The root is no path to add to a view: level = "host" does that.
    if not path.is_absolute() or ".." in path.parts or path.parent == path:
        raise ValueError
    return str(path)


def _read_duration(value: object) -> float:
    seconds = 0.0
    if isinstance(value, str) and value:
        match = _DURATION.fullmatch(value)
        if match is None:
            raise ValueError
        seconds = sum(
            float(part or 0) * unit for part, unit in zip(match.groups(), _UNIT_SECONDS, strict=True)
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if not 0 < seconds <= _SECONDS_MAX:
        raise ValueError
    return seconds


def _read_size(value: object) -> int:
    size = 0
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise ValueError
        size = int(match[1]) * _UNIT_BYTES[match[2]]
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    if not 0 < size < 2**63:
        raise ValueError
    return size


def _read_url(value: object) -> str:
    text = _read_text(value)
    parts = urlsplit(text)
    # A name and password in the address would be shown with the address.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    if parts.port == 0:
        raise ValueError
    return text.rstrip("/")


def _read_database(value: object) -> str:
    text = _read_text(value)
    if urlsplit(text).scheme not in ("postgresql", "postgres") or has_password(text):
        raise ValueError
    return text


def has_password(value: object) -> bool:
    """Return whether the address of a database has its password in it."""
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True)


def _read_variable(value: object) -> str:
    text = _read_text(value)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", text):
        raise ValueError
    return text


def classes(literal: Any) -> Reading[Mapping[str, Any]]:
    """A table whose values are words of a Literal type."""
    words = get_args(literal)

    def read(value: object) -> Mapping[str, Any]:
        if not isinstance(value, dict) or any(each not in words for each in value.values()):
            raise ValueError
        return value

    return Reading("a table with values of " + ", ".join(f'"{word}"' for word in words), read)


def _read_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or any(not isinstance(each, str) or "\0" in each for each in value):
        raise ValueError
    return tuple(value)


def _read_variables(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_read_variable, _read_texts(value))))


def _read_table(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    _read_texts([*value, *value.values()])
    return value


def _read_words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    return tuple(map(_read_text, value))


def _read_values(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(each, str) and "\0" not in each for each in value.values()
    ):
        raise ValueError
    return {_read_variable(name): each for name, each in value.items()}


def _read_rules(value: object) -> tuple[str, ...]:
    rules = _read_texts(value)
    if not all(RULE.fullmatch(rule) for rule in rules):
        raise ValueError
    return rules


POSITIVE = Reading("a number above 0 and at most 1000, such as 2 or 0.5", _read_positive)
PRICE = Reading("a number from 0 to 1000000: what a million tokens cost", _read_price)
COST = Reading("a number above 0 and at most 1000000000, in the currency of the prices", _read_cost)
SWITCH = Reading("true or false", _read_switch)
TEXT = Reading("a text in quotes", _read_text)
NAMES = Reading('a list of names such as ["small", "other"], or []', _read_names)
DURATION = Reading('a duration such as "90s", "30m" or "1h30m", or a number of seconds', _read_duration)
SIZE = Reading('a size such as "512MB" or "1GiB", or a number of bytes', _read_size)
URL = Reading('an address such as "http://127.0.0.1:8000/v1", without name and password', _read_url)
DATABASE = Reading('an address such as "postgresql://host/database", without password', _read_database)
VARIABLE = Reading('the name of an environment variable such as "OPENAI_API_KEY"', _read_variable)
TEXTS = Reading('a list of texts such as ["program", "--option"]', _read_texts)
VARIABLES = Reading('a list of names of environment variables such as ["API_KEY"], or []', _read_variables)
TABLE = Reading('a table of texts such as { NAME = "value" }', _read_table)
WORDS = Reading('a program and its arguments such as ["opencode", "acp"]', _read_words)
VALUES = Reading('variables with their values such as { NO_BROWSER = "1" }', _read_values)
RULES = Reading('a list of rules such as ["read", "shell(git *)"], or []', _read_rules)
FOLDERS = Reading('a folder such as "agents", or a list of folders', _read_folders)
PATHS = Reading(
    'a list of absolute paths such as ["/srv/data", "~/src"], without ".." and not "/" itself', _read_paths
)
