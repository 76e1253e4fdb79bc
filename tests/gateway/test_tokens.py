"""Tokens and pairing codes: the store as the gateway and hermesctl use it."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tokens import CODE_SECONDS, RIGHTS, Token, TokenError, TokenStore
from tests.hermesctl.hand import hermesctl


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.db"


@pytest.fixture
def store(path: Path) -> Iterator[TokenStore]:
    opened = TokenStore(path)
    yield opened
    opened.close()


def test_a_secret_finds_its_token_and_no_other_text_does(store: TokenStore) -> None:
    token, secret = store.add("phone", "anna", ["talk", "watch"])
    other, _ = store.add("phone", "bob", ["watch"])

    assert store.find(secret) == token == Token(token.id, "phone", "anna", frozenset({"talk", "watch"}))
    assert other.id != token.id
    for wrong in ("", secret[:-1], secret + "A", secret.upper(), token.id, "\ud800"):
        assert store.find(wrong) is None


def test_only_the_hash_of_a_secret_is_stored_and_only_for_the_owner_of_the_file(
    store: TokenStore, path: Path
) -> None:
    _, secret = store.add("phone", "", ["talk"])
    code = store.make_code("tablet", "", ["talk"])

    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for clear in (secret, secret.removeprefix("hermes_"), code, code.replace("-", "")):
        assert clear.encode() not in held
    assert path.stat().st_mode & 0o777 == 0o600


def test_f1_the_first_token_is_made_once_and_a_revoked_one_stays_revoked(
    store: TokenStore, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    store.make_first(file)
    secret = file.read_text().strip()
    first = store.find(secret)
    assert first is not None
    assert first.rights == frozenset(RIGHTS)
    assert file.stat().st_mode & 0o777 == 0o600

    store.make_first(file)
    assert file.read_text().strip() == secret
    store.revoke("first")
    store.make_first(file)
    assert store.find(secret) is None
    assert len(store.rows()) == 1


def test_a_first_token_whose_file_cannot_be_written_is_not_made(store: TokenStore, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        store.make_first(tmp_path / "absent" / "token")
    assert store.rows() == []


def test_f11_another_process_sees_a_revocation(store: TokenStore, path: Path) -> None:
    token, secret = store.add("phone", "", ["talk"])
    assert not store.has_changed()  # its own writes are known
    elsewhere = TokenStore(path)
    elsewhere.revoke(token.id)
    elsewhere.close()

    assert store.has_changed()
    assert not store.has_changed()
    assert not store.is_valid(token.id)
    assert store.find(secret) is None


def test_revoking_names_what_is_wrong(store: TokenStore) -> None:
    one, _ = store.add("phone", "", ["talk"])
    two, _ = store.add("phone", "anna", ["talk"])
    with pytest.raises(TokenError) as several:
        store.revoke("phone")
    assert one.id in several.value.hint
    assert two.id in several.value.hint
    assert store.revoke(one.id) == one
    assert store.revoke("phone") == two
    with pytest.raises(TokenError, match="no valid token"):
        store.revoke(one.id)


@pytest.mark.parametrize(
    ("name", "owner", "rights", "fault"),
    [
        ("", "", ["talk"], "name of a token"),
        ("a\nb", "", ["talk"], "name of a token"),
        ("a\u202eb", "", ["talk"], "name of a token"),
        ("x" * 65, "", ["talk"], "name of a token"),
        ("phone", "Anna", ["talk"], "owner"),
        ("phone", "a:b", ["talk"], "owner"),
        ("phone", "", ["fly"], "no right 'fly'"),
        ("phone", "", [], "without any right"),
    ],
)
def test_bad_names_owners_and_rights_are_refused(
    store: TokenStore, name: str, owner: str, rights: list[str], fault: str
) -> None:
    for make in (store.add, store.make_code):
        with pytest.raises(TokenError, match=fault):
            make(name, owner, rights)
    assert store.rows() == []


def test_a_code_is_exchanged_once(store: TokenStore) -> None:
    code = store.make_code("phone", "anna", ["talk", "watch"])
    typed = f" {code.lower().replace('-', ' ')} "

    redeemed = store.redeem(typed)
    assert redeemed is not None
    token, secret = redeemed
    assert (token.name, token.owner, token.rights) == ("phone", "anna", frozenset({"talk", "watch"}))
    assert store.find(secret) == token
    assert store.redeem(code) is None


def test_a_code_ends_after_five_minutes(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    code = store.make_code("phone", "", ["talk"])
    later = time.time() + CODE_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert store.redeem(code) is None


def test_guessing_ends_every_code(store: TokenStore) -> None:
    code = store.make_code("phone", "", ["talk"])
    for _ in range(9):
        assert store.redeem("AAAA-AAAA") is None
    assert store.redeem(code) is not None

    code = store.make_code("phone", "", ["talk"])
    for _ in range(10):
        assert store.redeem("AAAA-AAAA") is None
    assert store.redeem(code) is None


def test_browsers_that_were_ended_are_forgotten_after_a_month(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = store.add("phone", "", ["talk"])
    ended, _ = store.add_browser(token)
    store.revoke(ended.id)
    now = time.time()
    for days, is_listed in ((29, True), (31, False)):
        monkeypatch.setattr(time, "time", lambda at=now + days * 24 * 3600: at)
        store.add_browser(token)
        assert (ended.id in {row["id"] for row in store.rows()}) == is_listed


def test_codes_are_few(store: TokenStore) -> None:
    for _ in range(16):
        store.make_code("phone", "", ["talk"])
    with pytest.raises(TokenError, match="16 unused"):
        store.make_code("phone", "", ["talk"])


def test_a_use_is_recorded_once_a_minute(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    token, _ = store.add("phone", "", ["talk"])
    now = time.time()
    recorded = []
    for seconds in (0, 30, 61):
        monkeypatch.setattr(time, "time", lambda at=now + seconds: at)
        store.note_use(token.id)
        recorded.append(store.rows()[0]["used_at"])
    assert recorded == [now, now, now + 61]


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    path.write_text("this is no database, and it is long enough to be read as one" * 20)
    with pytest.raises(TokenError, match=r"tokens\.db cannot be opened"):
        TokenStore(path)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TokenError, match=r"link\.db cannot be opened"):
        TokenStore(link)
    assert not (tmp_path / "elsewhere").exists()


def test_commands_add_list_revoke_and_pair_without_a_service(tmp_path: Path) -> None:
    home = tmp_path / "home"
    added = hermesctl(home, "tokens", "add", "phone", "--owner", "anna", "--rights", "talk,watch", "--json")
    made = json.loads(added.out)
    assert (added.code, made["owner"], made["rights"]) == (0, "anna", ["talk", "watch"])
    plain = hermesctl(home, "tokens", "add", "tablet").out.strip()
    code = hermesctl(home, "pair", "car", "--owner", "bob").out.strip()

    store = TokenStore(home / "tokens.db")
    try:
        found = store.find(made["token"])
        assert found is not None
        assert found.id == made["id"]
        assert store.find(plain) is not None
        redeemed = store.redeem(code)
        assert redeemed is not None
        assert redeemed[0].owner == "bob"
    finally:
        store.close()

    rows = json.loads(hermesctl(home, "tokens", "list", "--json").out)
    assert [(row["name"], row["state"]) for row in rows] == [
        ("phone", "valid"),
        ("tablet", "valid"),
        ("car", "valid"),
    ]
    assert "digest" not in rows[0]
    assert hermesctl(home, "tokens", "revoke", "phone").code == 0
    again = hermesctl(home, "tokens", "revoke", "phone")
    assert (again.code, "no valid token phone" in again.err) == (5, True)


@pytest.mark.parametrize(
    ("line", "code", "fault"),
    [
        (("tokens", "add", "phone", "--rights", "fly"), 2, "talk, watch or operate"),
        (("tokens", "add", "phone", "--owner", "An:na"), 5, "not the name of an owner"),
        (("tokens", "add", " "), 2, "is empty"),
    ],
)
def test_commands_name_what_is_wrong(tmp_path: Path, line: tuple[str, ...], code: int, fault: str) -> None:
    result = hermesctl(tmp_path, *line)
    assert (result.code, fault in result.err) == (code, True), result.err


def test_a_store_of_an_earlier_version_is_used_further(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    raw = sqlite3.connect(path)
    raw.execute(
        """CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL,
        rights TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, made_at REAL NOT NULL, used_at REAL,
        revoked_at REAL) STRICT"""
    )
    digest = hashlib.sha256(b"hermes_old").digest()
    raw.execute("INSERT INTO tokens VALUES ('t_1', 'phone', 'anna', 'talk', ?, 1.0, NULL, NULL)", (digest,))
    raw.commit()
    raw.close()
    stores = [TokenStore(path), TokenStore(path)]
    found = stores[0].find("hermes_old")
    assert found is not None
    assert stores[1].find_browser(stores[0].add_browser(found)[1]) is not None
    assert [row["kind"] for row in stores[1].rows()] == ["program", "browser"]
    for store in stores:
        store.close()


def test_tables_of_a_store_are_strict(store: TokenStore, path: Path) -> None:
    """A column of another type would be compared with nothing."""
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError), raw:
        raw.execute("INSERT INTO tokens VALUES ('t', 'n', '', 'talk', 'text, no blob', 0, NULL, NULL, NULL)")
    raw.close()
    assert os.path.exists(path)
