"""`python -m supervisor`, and the installed `hermes-supervisor`: the supervisor in the foreground.

An import could load a foreign module, so none is made before the interpreter is isolated.
"""

import sys
from os.path import abspath, dirname

if not sys.flags.safe_path and __name__ == "__main__":
    # `-m` has put the working directory first, which may be any folder. Our packages are in this one.
    sys.path[0] = dirname(dirname(abspath(__file__)))

from typing import NoReturn

from ipc.interpreter import isolate


def main() -> NoReturn:
    isolate("supervisor")
    from supervisor.entry import main as start

    start()


if __name__ == "__main__":
    main()
