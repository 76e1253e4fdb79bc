"""The order in which a launched module finds others: the standard library, what is laid beside, then ours."""

import json
import subprocess
import sys
from pathlib import Path

from ipc.interpreter import FLAGS, PACKAGES
from ipc.launch import VERSION

PROBE = """
import json, sys, decimal, tests, msgspec
print(json.dumps([sys.argv, decimal.__file__, tests.__file__, msgspec.__file__]))
"""


def test_packages_laid_beside_come_after_the_standard_library_and_before_all_others(tmp_path: Path) -> None:
    laid = tmp_path / sys.implementation.cache_tag
    laid.mkdir()
    (laid / "probe.py").write_text(PROBE)
    for name in ("decimal", "tests", "msgspec"):
        (laid / f"{name}.py").touch()
    launcher = str(PACKAGES / "ipc" / "launch.py")
    line = [sys.executable, *FLAGS, launcher, f"+{tmp_path}/{VERSION}", "probe", "+is an argument"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd="/")
    arguments, decimal, tests, msgspec = json.loads(done.stdout)
    assert arguments[1:] == ["+is an argument"]
    assert Path(decimal).parent != laid
    assert [Path(tests).parent, Path(msgspec).parent] == [laid, laid]
