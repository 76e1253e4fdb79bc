"""Reasons are kinds for programs and sentences for people."""

import pytest

from supervisor.core.reasons import EndReason, Reason


@pytest.mark.parametrize("kind", EndReason)
def test_every_kind_has_a_sentence(kind: EndReason) -> None:
    assert str(Reason(kind, "some detail"))


def test_the_detail_is_put_into_the_sentence() -> None:
    assert str(Reason(EndReason.SILENT, "300 s")) == "no progress for 300 s"


def test_a_detail_with_braces_stays_as_it_is() -> None:
    assert str(Reason(EndReason.EXITED, "its last words: {0} {name}")) == "its last words: {0} {name}"
