"""`python -m tests.walks [WALK …]`: takes the walks and prints them, with the files and returns of each."""

import sys
import tempfile
from pathlib import Path

from tests.fake_model import FakeModel
from tests.walks.scenes import SCENES
from tests.walks.walk import consulted, files, returns, walk


def main(names: list[str]) -> None:
    with FakeModel() as model:
        for name in names or SCENES:
            with tempfile.TemporaryDirectory() as folder:
                entries = SCENES[name].play(Path(folder) / "home", model)
            hops = walk(entries, SCENES[name].beside)
            looked = consulted(entries, hops)
            print(f"{name}: {len(files(hops))} files, {returns(hops)} returns; {len(looked)} files consulted")
            for hop in hops:
                print(f"  {'return to ' if hop.is_return else ''}{hop.file}: {', '.join(hop.functions)}")


if __name__ == "__main__":
    main(sys.argv[1:])
