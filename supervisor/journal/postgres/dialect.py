"""The SQL of the journal for PostgreSQL: every statement is written once, for SQLite, and translated here.

A fence that were written twice could differ. So the statements of this package keep to what both databases
understand, and the differences that remain are mechanical:

| SQLite | PostgreSQL |
| --- | --- |
| `?`, `?2`, `:name` | `%s`, `%(p2)s`, `%(name)s` |
| `?1 IS NULL` | the same as text: a parameter has a type |
| `INDEXED BY x` | nothing: the planner chooses |
| `LIKE`, which ignores the case of ASCII | `ILIKE`, which does so in the collation "C" |
| `json_each(?) AS x` with `CROSS JOIN … ON` | `json_array_elements_text` with `JOIN … ON` |
| `listed.value ->> 0`, `->> 1` for a pair of turn and number | the same on json, the number as bigint |

Functions that only SQLite has are made in the schema (`json_extract`, `json_insert`). What cannot be
translated is written again in own_statements.py.

**U+0000.** PostgreSQL's text cannot hold it, SQLite's can, and tools print it. Texts are escaped when they
are written, unescaped when they are read: DLE (U+0010) begins an escape, `DLE @` is U+0000, `DLE DLE` is DLE
itself. Both are rare, so that almost every text is stored as it is. JSON escapes control characters itself,
so the escape never occurs in a column of JSON.
"""

import re
from functools import cache

_ESCAPE, _NUL = "\x10", "\x00"
_ESCAPED = re.compile("\x10([@\x10])")

_INDEXED = re.compile(r"\bINDEXED BY \w+")
_LISTED = re.compile(r"json_each\((\?|:\w+)\)(?: AS (\w+))?")
_PAIR_TEXT = re.compile(r"(\w+)\.value ->> 0")
_PAIR_NUMBER = re.compile(r"(\w+)\.value ->> 1")
_ABSENT = re.compile(r"(\?\d) IS NULL")
_NUMBERED = re.compile(r"\?(\d)")
_PARAMETER = re.compile(r"%\((\w+)\)s")
_NAMED = re.compile(r"(?<!:):([a-z]\w*)")


@cache
def translated(sql: str) -> bytes:
    """Return a statement for PostgreSQL, with the parameters as psycopg writes them."""
    sql = _INDEXED.sub("", sql.replace("%", "%%"))
    sql = _ABSENT.sub(r"\1::text IS NULL", sql)
    sql = _LISTED.sub(_elements, sql)
    sql = _PAIR_TEXT.sub(r"(\1.value::json ->> 0)", sql)
    sql = _PAIR_NUMBER.sub(r"(\1.value::json ->> 1)::bigint", sql)
    sql = _NUMBERED.sub(r"%(p\1)s", sql.replace("CROSS JOIN", "JOIN").replace(" LIKE ", " ILIKE "))
    return _NAMED.sub(r"%(\1)s", sql.replace("?", "%s")).encode()


def _elements(found: re.Match[str]) -> str:
    name = found[2] or "listed"
    return f"json_array_elements_text({found[1]}::json) WITH ORDINALITY AS {name}(value, key)"


def numbered(sql: bytes) -> tuple[bytes, list[str]]:
    """Return a statement as libpq has it, with `$1` for `%(name)s`, and the names in their order."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return _PARAMETER.sub(number, sql.decode()).replace("%%", "%").encode(), names


@cache
def is_numbered(sql: str) -> bool:
    """Return whether the parameters of a statement are `?1`, `?2`, …"""
    return _NUMBERED.search(sql) is not None


def escaped(text: str) -> str:
    """Return the text without U+0000."""
    if _NUL in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ESCAPE + _ESCAPE).replace(_NUL, _ESCAPE + "@")
    return text


def unescaped(text: str) -> str:
    if _ESCAPE in text:
        return _ESCAPED.sub(lambda found: _NUL if found[1] == "@" else _ESCAPE, text)
    return text
