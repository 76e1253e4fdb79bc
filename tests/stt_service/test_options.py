"""Before a model is loaded: the memory limit of the process, bad options, and weights of one's own."""

import resource
from pathlib import Path

import pytest

from stt_service.__main__ import _limit_memory
from stt_service.errors import CannotServe
from stt_service.weight_check import find_weights

NONE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("hard", "wanted", "limits"),
    [(NONE, 4096, [4096]), (8192, 4096, [4096]), (2048, 4096, []), (4096, 4096, []), (NONE, 0, [])],
)
def test_the_limit_of_memory_is_lowered_only(
    monkeypatch: pytest.MonkeyPatch, hard: int, wanted: int, limits: list[int]
) -> None:
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda what, both: changed.append(both))
    _limit_memory(wanted)
    assert changed == [(limit, limit) for limit in limits]


def test_weights_of_ones_own_need_their_files_and_no_known_checksum(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("model.bin", "config.json", "tokenizer.json"):
        with pytest.raises(CannotServe, match=f"{name} of mine cannot be read: No such file") as refused:
            find_weights(tmp_path, "mine")
        assert refused.value.hint == f"put a CTranslate2 Whisper model into {folder}"
        (folder / name).write_bytes(b"of any content")
    assert find_weights(tmp_path, "mine") == folder
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    with pytest.raises(CannotServe, match=r"config\.json of mine cannot be read: Is a directory"):
        find_weights(tmp_path, "mine")
