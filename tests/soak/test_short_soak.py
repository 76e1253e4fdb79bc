"""The short form of `make soak`, with a seed of its own in every run."""

import random
import sys
from pathlib import Path

import pytest

from tests.soak.soak import soak

SECONDS = 20.0


@pytest.mark.timeout(300)
def test_d11_whatever_dies_every_message_ends_once_and_no_process_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = soak(tmp_path, SECONDS, random.randrange(1_000_000))
    with capsys.disabled():
        print(f"\n{report}", file=sys.stderr)
    assert report.counts["messages"] > 0
