"""One word, one meaning: words that docs/glossary.md gave up are in no file of the product, and no module's
name is used twice."""

import re
from collections import defaultdict
from pathlib import PurePosixPath

import pytest

from tests.house_rules import PRODUCT, Source, python_sources, written_sources

# The glossary's last section says what is written instead.
_GIVEN_UP = (
    "anew|briefing|desk|ears|farewell|hear|hearing|ledger|nobody|nursery|switchboard|tongues?|whoever|whom"
)
_WORD = re.compile(rf"(?<![a-z])(?:{_GIVEN_UP})(?![a-z])", re.IGNORECASE)
# The user of that name is the kernel's and Debian's word.
_THE_USER_NOBODY = ("supervisor/processes/agent_user.py", "worker/cell_etc.py")
# Modules that play the same role in sibling packages. A module of hermesctl/commands is named as its command.
_SAME_ROLE = frozenset({"__init__", "__main__", "contract", "errors", "log", "screen"})
_COMMANDS = "hermesctl/commands/"
_GLOSSARY = "docs/glossary.md"


def _product() -> list[Source]:
    return [source for source in python_sources() if source.path.split("/")[0] in PRODUCT]


def _docs() -> list[Source]:
    readable = [source for source in written_sources() if source.path.endswith(".md")]
    return [
        source
        for source in readable
        if not source.path.startswith(("docs/decisions/", "tests/", "CHANGELOG")) and source.path != _GLOSSARY
    ]


def _given_up(source: Source) -> list[str]:
    # Decisions keep the titles that they were made under.
    text = re.sub(r"decisions/[\w.-]+", "", source.text)
    words = _WORD.findall(text.replace("_", " "))
    return [word for word in words if not (source.path in _THE_USER_NOBODY and word.lower() == "nobody")]


def test_no_word_is_used_that_the_glossary_gave_up() -> None:
    found = {source.path: words for source in (*_product(), *_docs()) if (words := _given_up(source))}
    assert found == {}


@pytest.mark.parametrize("text", ["# nobody", "class Switchboard: ...", "def hear_out(): ...", "_NOBODY = 0"])
def test_a_word_that_was_given_up_is_found_wherever_it_stands(text: str) -> None:
    assert _given_up(Source("supervisor/x.py", text))


@pytest.mark.parametrize("text", ["a shared heart", "overheard", "whomp", "desktop"])
def test_a_longer_word_is_another_one(text: str) -> None:
    assert _given_up(Source("supervisor/x.py", text)) == []


def test_every_word_that_is_rejected_stands_in_the_glossary() -> None:
    (glossary,) = [source for source in written_sources() if source.path == _GLOSSARY]
    table = glossary.text.partition("## Words that are not used")[2]
    for word in _GIVEN_UP.split("|"):
        assert re.search(rf"\b{word}\b", table), word


def test_no_two_modules_have_one_name() -> None:
    by_name = defaultdict(list)
    for source in _product():
        path = PurePosixPath(source.path)
        if path.stem not in _SAME_ROLE and not source.path.startswith(_COMMANDS):
            by_name[path.stem].append(source.path)
    assert {name: paths for name, paths in by_name.items() if len(paths) > 1} == {}
