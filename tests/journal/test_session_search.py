"""Sessions by the beginning of their name and by words: each once, in bounded steps."""

from dataclasses import replace

import pytest

from ipc.errors import BadPlace
from ipc.paging import page
from supervisor.core.records import TranscriptReady
from supervisor.journal import session_search
from supervisor.journal.journal import Journal
from tests.journal.conftest import every_journal
from tests.journal.lives import accepted


def found(journal: Journal, prefix: str = "", words: str = "", limit: int = 100) -> list[str]:
    names: list[str] = []
    after = ""
    for _ in range(10_000):
        table = page(journal.tables.found(prefix, words, after), limit)
        names += [row["name"] for row in table.rows]
        after = table.more
        if not after:
            return names
    raise AssertionError("the search does not end")


@pytest.fixture
def full(journal: Journal) -> Journal:
    journal.commit_now(
        [
            accepted(1, "anna:chat", 'The weather in "Berlin"\nis 100% fine_'),
            accepted(2, "anna:work", "Nothing special", seq=1),
            accepted(3, "annabel", "weather only", seq=1),
            accepted(4, "bert:Berlin", "Nothing special", seq=1),
            accepted(5, "anna:chat", "later", seq=2),
        ]
    )
    return journal


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_names_are_found_by_their_beginning_latest_activity_first(full: Journal, limit: int) -> None:
    assert found(full, "anna:", limit=limit) == ["anna:chat", "anna:work"]
    assert found(full, "ann", limit=limit) == ["anna:chat", "annabel", "anna:work"]
    assert found(full, "", limit=limit) == ["anna:chat", "bert:Berlin", "annabel", "anna:work"]
    assert found(full, "nobody", limit=limit) == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("berlin", ["anna:chat", "bert:Berlin"]),
        ("WEATHER", ["anna:chat", "annabel"]),
        ("weather berlin", ["anna:chat"]),
        ("weather later", []),
        ("weather special", []),
        ("nothing", ["bert:Berlin", "anna:work"]),
        ("100%", ["anna:chat"]),
        ("1%", []),
        ("e_", ["anna:chat"]),
        ("s_", []),
        ('"berlin"', ["anna:chat"]),
        ("bert", ["bert:Berlin"]),
        ("\\", []),
        ("' OR 1=1 --", []),
        ("message.accepted", []),
        ("queue", []),
    ],
)
def test_words_are_found_in_names_and_messages(full: Journal, words: str, names: list[str]) -> None:
    assert found(full, words=words) == names
    assert found(full, "anna:", words) == [name for name in names if name.startswith("anna:")]


@every_journal
def test_a_clip_is_found_by_its_transcript(journal: Journal) -> None:
    clip = accepted(1, "s", "")
    ready = TranscriptReady(session="s", at=2.0, seq=2, message=clip.message, text="spoken words")
    journal.commit_now([replace(clip, kind="voice", clip="a"), ready])
    assert found(journal, words="spoken") == ["s"]


def test_a_search_pauses_after_its_time_and_goes_on_where_it_was(
    full: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all every step is one page, within a long session too."""
    monkeypatch.setattr(session_search, "_SECONDS_MAX", -1.0)
    monkeypatch.setattr(session_search, "_EVENTS", 1)
    full.commit_now([accepted(number, "long", "needle" if number == 3 else "hay") for number in range(1, 40)])
    assert found(full, words="needle") == ["long"]
    assert found(full, words="weather") == ["anna:chat", "annabel"]
    assert found(full, words="nowhere") == []
    first = page(full.tables.found("", "needle", ""))
    assert (first.rows, bool(first.more)) == ((), True)


def test_the_place_within_a_session_where_a_search_paused_counts_for_that_session_only(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.commit_now(
        [
            *(accepted(number, "old", "needle" if number == 3 else "hay") for number in (1, 2, 3)),
            *(accepted(number, "new", "hay", seq=number - 10) for number in (11, 12, 13)),
        ]
    )
    with monkeypatch.context() as hurried:
        hurried.setattr(session_search, "_SECONDS_MAX", -1.0)
        hurried.setattr(session_search, "_EVENTS", 2)
        first = page(journal.tables.found("", "needle", ""))
    assert (first.rows, "new" in first.more) == ((), True)
    # The next page goes on below that place, and has the time to look at the other session, too.
    monkeypatch.setattr(session_search, "_SECONDS_MAX", 60.0)
    second = page(journal.tables.found("", "needle", first.more))
    assert [row["name"] for row in second.rows] == ["old"]


@pytest.mark.parametrize("place", ["x", "[]", "[1,2]", '["a","b",1]', '[1.0,"s",-1]'])
def test_a_place_that_no_page_gave_is_refused(full: Journal, place: str) -> None:
    with pytest.raises(BadPlace):
        page(full.tables.found("a", "", place))


def test_words_behind_the_eighth_count_as_one(journal: Journal) -> None:
    journal.commit_now([accepted(1, "s", "a b c d e f g h i")])
    assert found(journal, words="i h g f e d c b") == ["s"]
    assert found(journal, words="a b c d e f g h i") == ["s"]
    assert found(journal, words="a b c d e f g h missing") == []
