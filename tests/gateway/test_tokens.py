"""Tokens and pairing codes: the store as the gateway and hermesctl use it."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tokens import BROWSERS_MAX, CODE_SECONDS, RIGHTS, Token, TokenError, TokenStore
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


def test_valid_tokens_of_programs_are_a_thousand_at_most(store: TokenStore) -> None:
    first, _ = store.add("phone", "", ["talk"])
    store._db.execute("BEGIN")
    for _ in range(998):
        store.add("phone", "", ["talk"])
    store._db.execute("COMMIT")
    store.add_browser(first)
    last, _ = store.add("phone", "", ["talk"])
    with pytest.raises(TokenError, match="1,000 tokens"):
        store.add("phone", "", ["talk"])
    store.revoke(last.id)
    store.add("phone", "", ["talk"])


def test_secrets_and_codes_are_too_many_to_be_guessed(store: TokenStore) -> None:
    _, secret = store.add("phone", "", ["talk"])
    # 32 random bytes in base64.
    assert len(secret) == len("hermes_") + 43
    code = store.make_code("phone", "", ["talk"])
    assert (len(code), code[4]) == (9, "-")
    assert CODE_SECONDS == 300.0


def test_a_code_that_has_ended_makes_room_for_another(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(16):
        store.make_code("phone", "", ["talk"])
    later = time.time() + CODE_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert store.redeem(store.make_code("phone", "", ["talk"])) is not None


def test_wrong_guesses_count_against_all_codes(store: TokenStore) -> None:
    codes = [store.make_code("phone", "", ["talk"]) for _ in range(3)]
    for _ in range(10):
        assert store.redeem("AAAA-AAAA") is None
    assert [store.redeem(code) for code in codes] == [None, None, None]


def test_a_browser_has_owner_and_rights_of_its_token_and_ends_with_it(store: TokenStore) -> None:
    token, secret = store.add("phone", "anna", ["watch"])
    browser, own = store.add_browser(token)
    assert (browser.owner, browser.rights) == ("anna", frozenset({"watch"}))
    assert store.find_browser(own) == browser
    # Neither secret counts in the place of the other one.
    assert (store.find(own), store.find_browser(secret)) == (None, None)
    store.revoke(token.id)
    assert store.find_browser(own) is None
    assert not store.is_valid(browser.id)


def test_a_code_may_let_in_a_browser_which_no_other_token_ends(store: TokenStore) -> None:
    redeemed = store.redeem(store.make_code("tablet", "anna", ["talk"]), is_browser=True)
    assert redeemed is not None
    assert store.find(redeemed[1]) is None
    assert store.find_browser(redeemed[1]) == redeemed[0]
    assert [row["made_from"] for row in store.rows()] == ["code"]


def test_revoking_leaves_the_time_at_which_a_browser_was_ended(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = store.add("phone", "", ["talk"])
    browser, _ = store.add_browser(token)
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    store.revoke(browser.id)
    monkeypatch.setattr(time, "time", lambda: 2_000.0)
    store.revoke(token.id)
    ended = {row["id"]: row["revoked_at"] for row in store.rows()}
    assert ended == {browser.id: 1_000.0, token.id: 2_000.0}


def test_the_browser_that_was_used_longest_ago_is_ended_and_no_other_owners(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = store.add("phone", "anna", ["talk"])
    other, _ = store.add("phone", "bob", ["talk"])
    clock = iter(range(1_000, 2_000))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    kept, _ = store.add_browser(other)
    made = [store.add_browser(token)[0].id for _ in range(BROWSERS_MAX)]
    monkeypatch.setattr(time, "time", lambda: 3_000.0)
    store.note_use(made[0])
    newest, _ = store.add_browser(token)
    valid = {row["id"] for row in store.rows() if row["state"] == "valid" and row["kind"] == "browser"}
    assert valid == {kept.id, made[0], *made[2:], newest.id}


def test_a_programs_token_that_was_revoked_is_shown_for_good(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoked, _ = store.add("phone", "", ["talk"])
    store.revoke(revoked.id)
    token, _ = store.add("tablet", "", ["talk"])
    later = time.time() + 400 * 24 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    store.add_browser(token)
    assert revoked.id in {row["id"] for row in store.rows()}


def test_the_longest_names_of_tokens_and_owners_are_accepted(store: TokenStore) -> None:
    token, _ = store.add("n" * 64, "o" * 32, ["talk"])
    assert (token.name, token.owner) == ("n" * 64, "o" * 32)
    with pytest.raises(TokenError, match="owner"):
        store.add("phone", "o" * 33, ["talk"])


def test_the_first_secret_is_on_the_disk_before_its_token_is_valid(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced = tmp_path / "token", []

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        content = path.read_text() if path.is_file() else ""
        synced.append((path.is_dir(), content.startswith("hermes_"), file.exists(), len(store.rows())))

    monkeypatch.setattr(os, "fsync", fsync)
    store.make_first(file)
    # The whole text, then its name in the folder, then the row.
    assert synced == [(False, True, False, 0), (True, False, True, 0)]
    assert len(store.rows()) == 1


def test_a_store_waits_for_another_process_that_writes(store: TokenStore) -> None:
    assert store._db.execute("PRAGMA busy_timeout").fetchone()[0] == 5_000
