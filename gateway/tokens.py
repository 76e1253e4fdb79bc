"""Tokens of the gateway: who may use it, for which owner, and with which rights.

A token is a random secret that a client sends with each request. Only its SHA-256 is stored: the secret has
256 random bits, so a slow hash would protect nothing that a fast one does not. The store is a small SQLite
database in the state folder. hermesctl and the gateway both open it, and the supervisor never does: adding or
revoking a token needs no running service, and a running gateway sees the change by `has_changed`.

A pairing code is a short secret that a person types once, in exchange for a token. It is valid for five
minutes. Its few characters could be guessed, so wrong guesses are counted, and after a few no code is valid
any more.

A browser that logs in, by a code or by a token, gets a token of its own with the same owner and rights. It
counts only in the cookie, and ends with the token that it was made from.
"""

import hashlib
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RIGHTS = ("talk", "watch", "operate")
CODE_SECONDS = 300.0
# Name of the token that is made at the first start, and has every right.
FIRST = "first"

_PREFIX = "hermes_"
_SECRET_BYTES = 32
# No letter or digit that is taken for another one.
_CODE_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_CODE_LENGTH = 8
# Wrong codes, of anybody, after which a code is given up. Codes are one of 8·10¹¹.
_MISSES_MAX = 10
_CODES_MAX = 16
_TOKENS_MAX = 1_000
# Of one owner. Browsers forget cookies without logging out; the one that was used longest ago is ended.
BROWSERS_MAX = 100
# A browser that was ended is shown this long.
_ENDED_BROWSER_SECONDS = 30 * 24 * 3600.0
# The name of a token that a browser got for another token; one got by a code has the name of the code.
BROWSER = "browser"
# A use is recorded this often, not with every request.
_USE_SECONDS = 60.0
_BUSY_SECONDS = 5.0
_NAME_CHARACTERS_MAX = 64
_OWNER = re.compile(r"[a-z0-9_-]{0,32}")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, rights TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE, made_at REAL NOT NULL, used_at REAL, revoked_at REAL, made_from TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS codes (
    digest BLOB PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, rights TEXT NOT NULL,
    valid_until REAL NOT NULL, misses INTEGER NOT NULL DEFAULT 0
) STRICT;
"""
# What a browser's token was made from: the id of a token, or this. Programs' tokens have null.
_CODE = "code"


class TokenError(Exception):
    """A request to the store that cannot be carried out: `fault` says why, `hint` what to do."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


@dataclass(frozen=True)
class Token:
    """A valid token. `owner` is its namespace of sessions; an empty one uses all names as they are."""

    id: str
    name: str
    owner: str
    rights: frozenset[str]


class TokenStore:
    """The database of tokens and codes. Use it from one thread."""

    def __init__(self, path: Path) -> None:
        try:
            # SQLite would create the file with the rights that the umask leaves.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._db.executescript(_SCHEMA)
            self._add_column()
        except (OSError, sqlite3.Error) as error:
            hint = "look at the rights on its folder and at the space on its disk"
            raise TokenError(f"the tokens in {path} cannot be opened ({error})", hint) from error
        self._db.row_factory = sqlite3.Row
        self._version = self._data_version()

    def close(self) -> None:
        self._db.close()

    def make_first(self, file: Path) -> None:
        """Make the first token and write its secret to the file, unless it was made before.

        The file is durable before the token is valid: a crash between the two makes another secret next time.
        A first token that was revoked stays revoked.
        """
        if self._db.execute("SELECT 1 FROM tokens WHERE name = ?", (FIRST,)).fetchone():
            return
        secret = _new_secret()
        _write_durably(file, f"{secret}\n")
        self._insert(secret, FIRST, "", frozenset(RIGHTS))

    def add(self, name: str, owner: str, rights: Iterable[str]) -> tuple[Token, str]:
        """Make a token; return it and its secret, which is stored nowhere."""
        _check(name, owner, rights := frozenset(rights))
        query = "SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND made_from IS NULL"
        (count,) = self._db.execute(query).fetchone()
        if count >= _TOKENS_MAX:
            raise TokenError(f"there are {count:,} tokens already", "hermesctl tokens revoke ID")
        secret = _new_secret()
        return self._insert(secret, name, owner, rights), secret

    def add_browser(self, token: Token) -> tuple[Token, str]:
        """Make a token for a browser that has shown this one."""
        secret = _new_secret()
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            return self._insert_browser(secret, BROWSER, token.owner, token.rights, token.id), secret

    def find(self, secret: str) -> Token | None:
        """Return the valid token of a program with this secret.

        The hash is what is compared, so the time that takes says nothing about the secret.
        """
        return self._found(secret, "made_from IS NULL")

    def find_browser(self, secret: str) -> Token | None:
        """Return the valid token of a browser with this secret."""
        return self._found(secret, "made_from IS NOT NULL")

    def is_valid(self, id: str) -> bool:
        query = "SELECT 1 FROM tokens WHERE id = ? AND revoked_at IS NULL"
        return self._db.execute(query, (id,)).fetchone() is not None

    def has_changed(self) -> bool:
        """Return whether another process has written since the last call."""
        before, self._version = self._version, self._data_version()
        return self._version != before

    def note_use(self, id: str) -> None:
        """Record that the token is in use, once a minute at most."""
        now = time.time()
        self._db.execute(
            "UPDATE tokens SET used_at = ? WHERE id = ? AND coalesce(used_at, 0) < ?",
            (now, id, now - _USE_SECONDS),
        )

    def revoke(self, which: str) -> Token:
        """End a token by its id, or by its name where one valid token has it, and the browsers it let in."""
        query = "SELECT * FROM tokens WHERE revoked_at IS NULL AND ? IN (id, name)"
        rows = self._db.execute(query, (which,)).fetchall()
        if not rows:
            raise TokenError(f"there is no valid token {which}", "see `hermesctl tokens list`")
        if len(rows) > 1:
            ids = ", ".join(row["id"] for row in rows)
            raise TokenError(f"{len(rows)} tokens are called {which}", f"revoke one by its id: {ids}")
        token = _token(rows[0])
        query = "UPDATE tokens SET revoked_at = ?1 WHERE ?2 IN (id, made_from) AND revoked_at IS NULL"
        self._db.execute(query, (time.time(), token.id))
        return token

    def rows(self) -> list[dict[str, Any]]:
        """Return all tokens, revoked ones too, without their hashes."""
        columns = "id, name, owner, rights, made_at, used_at, revoked_at, made_from"
        found = self._db.execute(f"SELECT {columns} FROM tokens ORDER BY made_at, id")
        return [
            {
                **row,
                "rights": row["rights"].split(),
                "kind": "program" if row["made_from"] is None else "browser",
                "state": "revoked" if row["revoked_at"] else "valid",
            }
            for row in found
        ]

    def make_code(self, name: str, owner: str, rights: Iterable[str]) -> str:
        """Make a pairing code for a token with this name, owner and rights."""
        _check(name, owner, rights := frozenset(rights))
        now = time.time()
        letters = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM codes WHERE valid_until <= ?", (now,))
            (count,) = self._db.execute("SELECT count(*) FROM codes").fetchone()
            if count >= _CODES_MAX:
                hint = f"each is valid for {CODE_SECONDS / 60:.0f} minutes: use one, or wait"
                raise TokenError(f"there are {count} unused pairing codes already", hint)
            self._db.execute(
                "INSERT INTO codes (digest, name, owner, rights, valid_until) VALUES (?, ?, ?, ?, ?)",
                (_digest(letters), name, owner, _written(rights), now + CODE_SECONDS),
            )
        return f"{letters[:4]}-{letters[4:]}"

    def redeem(self, code: str, is_browser: bool = False) -> tuple[Token, str] | None:
        """Exchange a pairing code for a token and its secret; None for a wrong code, which is counted."""
        letters = re.sub(r"[\s-]", "", code).upper()
        secret = _new_secret()
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM codes WHERE valid_until <= ?", (time.time(),))
            query = "DELETE FROM codes WHERE digest = ? RETURNING name, owner, rights"
            row = self._db.execute(query, (_digest(letters),)).fetchone()
            if row is None:
                self._db.execute("UPDATE codes SET misses = misses + 1")
                self._db.execute("DELETE FROM codes WHERE misses >= ?", (_MISSES_MAX,))
                return None
            made = row["name"], row["owner"], frozenset(row["rights"].split())
            if is_browser:
                return self._insert_browser(secret, *made, _CODE), secret
            return self._insert(secret, *made), secret

    def _insert_browser(
        self, secret: str, name: str, owner: str, rights: frozenset[str], made_from: str
    ) -> Token:
        """Make a browser's token. Their number is bounded; those that were ended are forgotten in time."""
        now = time.time()
        self._db.execute(
            "DELETE FROM tokens WHERE made_from IS NOT NULL AND revoked_at < ?",
            (now - _ENDED_BROWSER_SECONDS,),
        )
        self._db.execute(
            """UPDATE tokens SET revoked_at = ? WHERE id IN (
                SELECT id FROM tokens WHERE made_from IS NOT NULL AND owner = ? AND revoked_at IS NULL
                ORDER BY coalesce(used_at, made_at) DESC LIMIT -1 OFFSET ?)""",
            (now, owner, BROWSERS_MAX - 1),
        )
        return self._insert(secret, name, owner, rights, made_from)

    def _insert(
        self, secret: str, name: str, owner: str, rights: frozenset[str], made_from: str | None = None
    ) -> Token:
        token = Token(f"t_{secrets.token_hex(4)}", name, owner, rights)
        self._db.execute(
            "INSERT INTO tokens (id, name, owner, rights, digest, made_at, made_from) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (token.id, name, owner, _written(rights), _digest(secret), time.time(), made_from),
        )
        return token

    def _found(self, secret: str, condition: str) -> Token | None:
        query = f"SELECT * FROM tokens WHERE digest = ? AND revoked_at IS NULL AND {condition}"
        row = self._db.execute(query, (_digest(secret),)).fetchone()
        return None if row is None else _token(row)

    def _add_column(self) -> None:
        """A store of an earlier version knows no browsers."""
        if self._knows_browsers():
            return
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if not self._knows_browsers():
                self._db.execute("ALTER TABLE tokens ADD COLUMN made_from TEXT")

    def _knows_browsers(self) -> bool:
        return "made_from" in {row[1] for row in self._db.execute("PRAGMA table_info(tokens)")}

    def _data_version(self) -> int:
        """SQLite changes this number when another connection has committed."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])


def _check(name: str, owner: str, rights: frozenset[str]) -> None:
    if not (name.isprintable() and 0 < len(name) <= _NAME_CHARACTERS_MAX):
        fault = f"the name of a token has 1 to {_NAME_CHARACTERS_MAX} printable characters"
        raise TokenError(fault, "give it a short name")
    if not _OWNER.fullmatch(owner):
        hint = "an owner has up to 32 of the characters a-z, 0-9, _ and -"
        raise TokenError(f"{owner!r} is not the name of an owner", hint)
    if unknown := sorted(rights - frozenset(RIGHTS)):
        raise TokenError(f"there is no right {unknown[0]!r}", f"the rights are {', '.join(RIGHTS)}")
    if not rights:
        raise TokenError("a token without any right is of no use", f"the rights are {', '.join(RIGHTS)}")


def _token(row: sqlite3.Row) -> Token:
    return Token(row["id"], row["name"], row["owner"], frozenset(row["rights"].split()))


def _written(rights: frozenset[str]) -> str:
    return " ".join(right for right in RIGHTS if right in rights)


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _write_durably(file: Path, text: str) -> None:
    """Replace the file by one of mode 0600 with this text; after a power cut it is the old or the new one."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as output:
        output.write(text)
        output.flush()
        os.fsync(output.fileno())
    beside.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
