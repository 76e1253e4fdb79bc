"""Every story ends as it was written down; HERMES_REWRITE_STORIES=1 writes down what happens today."""

import os
from pathlib import Path

import pytest

from tests.core.story import parse, retell

_STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("path", _STORIES, ids=lambda path: path.stem)
def test_the_story_ends_as_written(path: Path) -> None:
    written = path.read_text()
    told = retell(written)
    if os.environ.get("HERMES_REWRITE_STORIES"):
        path.write_text(told)
        return
    assert told == written


def test_there_are_stories_and_each_says_what_it_is_about() -> None:
    assert len(_STORIES) >= 40
    for path in _STORIES:
        assert parse(path.read_text())[0].told[0].startswith("# "), f"{path.name} begins without a sentence"
