"""One hermes.toml as text and as data: read key by key, so that every error names its key and its line."""

import difflib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from supervisor.config.fields import Key, keys_of, tables_of

# A settings file is a page or two; a larger one was named by mistake.
_FILE_BYTES_MAX = 1024 * 1024
# A value is quoted in an error so that it can be found in the file.
_SHOWN_CHARACTERS_MAX = 60

_Table = TypeVar("_Table")
_Path = tuple[str, ...]


class SettingsError(Exception):
    """A fault in or about hermes.toml, and the hint that fixes it."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


@dataclass(frozen=True)
class SettingsFile:
    """The parsed file together with its text; an absent file is an empty one."""

    path: Path
    text: str
    data: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> "SettingsFile":
        text = _text_of(path)
        try:
            return cls(path, text, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise _broken(path, text, str(error)) from None

    def has(self, *path: str) -> bool:
        at: Any = self.data
        for name in path:
            if not isinstance(at, dict) or name not in at:
                return False
            at = at[name]
        return True

    def refuse_unknown_tables(self, known: _Path) -> None:
        for name in self.data:
            if name not in known:
                raise self.error((name,), "is not known", _nearest(name, known, "tables"))

    def read_named(self, name: str, table: type[_Table]) -> dict[str, _Table]:
        """Return a table of tables, in the file's order."""
        return {inner: self.read(table, name, inner) for inner in self._table(name)}

    def read(self, table: type[_Table], *path: str) -> _Table:
        """Return one table as its dataclass, each key by its own type, each inner table likewise."""
        known, inner = keys_of(table), tables_of(table)
        found: dict[str, Any] = {}
        for name, value in self._table(*path).items():
            if name in known:
                attribute, key = known[name]
                found[attribute] = self._value(key, value, (*path, name))
            elif name in inner:
                attribute, kind = inner[name]
                found[attribute] = self.read(kind, *path, name)
            else:
                # The value is not shown: a misspelt api_key would show the key.
                raise self.error((*path, name), "is not known", _nearest(name, (*known, *inner), "keys"))
        return table(**found)

    def error(self, path: _Path, what: str, hint: str) -> SettingsError:
        """`FILE line N: [table] key WHAT`, with the hint that fixes it."""
        line = find_line(self.text, path)
        place = f"{self.path} line {line}" if line else str(self.path)
        return SettingsError(f"{place}: {_spoken(path, self._at(path))} {what}", hint)

    def _table(self, *path: str) -> dict[str, Any]:
        value = self._at(path)
        if not isinstance(value, dict):
            raise self.error(path, "must be a table", f"write [{_dotted(path)}] on its own line")
        return value

    def _at(self, path: _Path) -> Any:
        at: Any = self.data
        for name in path:
            at = at[name]
        return at

    def _value(self, key: Key, value: object, path: _Path) -> object:
        try:
            return key.reading.read(value)
        except ValueError:
            example = "" if key.default is None else f"; the default is {_toml(key.default)}"
            shown = "holds what it cannot use" if "key" in key.name else f"= {_toml(value)} cannot be used"
            raise self.error(path, shown, f"write {key.reading.wants}{example}") from None


def find_line(text: str, path: _Path) -> int | None:
    """Return the line (from 1) of the key or the table of this path, or the closest one around it."""
    header: _Path = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if written.startswith("["):
            header = here = _keys_written(written)
        elif "=" in written and not written.startswith("#"):
            here = (*header, *_keys_written(written.partition("=")[0] + "=0"))
        else:
            continue
        if here and here == path[: len(here)] and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _keys_written(statement: str) -> _Path:
    """Return the path that one header or one `key =` names; empty inside a longer value."""
    try:
        at: Any = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return ()
    names = []
    while isinstance(at, dict) and at:
        name, at = next(iter(at.items()))
        names.append(name)
    return tuple(names)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            content = opened.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}", "make it a file that this user may read"
        ) from None
    if len(content) > _FILE_BYTES_MAX:
        raise SettingsError(f"{path} is larger than {_FILE_BYTES_MAX} bytes", "keep only settings in it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SettingsError(f"{path} line {line}: this is not UTF-8 text", "save the file as UTF-8") from None


def _broken(path: Path, text: str, complaint: str) -> SettingsError:
    match = re.search(r"\(at line (\d+), column (\d+)\)", complaint)
    place = f"line {match[1]}, column {match[2]}" if match else f"line {len(text.splitlines())}, at its end"
    what = re.sub(r" \(at .*\)$", "", complaint)
    hint = 'correct that line: a table is [name], a key is name = value, a text stands in "quotes"'
    return SettingsError(f"{path} {place}: this is not TOML: {what}", hint)


def _nearest(name: str, known: _Path, kind: str) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    listed = ", ".join(known)
    return (
        f"did you mean {close[0]}? The {kind} here are {listed}" if close else f"the {kind} here are {listed}"
    )


def _spoken(path: _Path, value: object) -> str:
    """Return a table as [its name], a key as [its table] key."""
    if isinstance(value, dict):
        return f"[{_dotted(path)}]"
    table = f"[{_dotted(path[:-1])}] " if path[:-1] else ""
    return table + path[-1]


def _dotted(path: _Path) -> str:
    return ".".join(name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"' for name in path)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        shown = f"[{', '.join(map(_toml, value))}]"
    else:
        shown = f'"{value}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= _SHOWN_CHARACTERS_MAX else shown[: _SHOWN_CHARACTERS_MAX - 1] + "…"
