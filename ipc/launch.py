"""`python -P -E -s ipc/launch.py [+FOLDER …] MODULE ARGUMENT…`: runs one of our modules as `__main__`.

A file and not `python -m`: with these flags the interpreter searches neither the working directory nor
PYTHONPATH, and our packages may be outside its search path, in a checkout or in a user's site folder. Their
folder is inserted after the standard library and before the installed packages; so are those named with a
plus, in front of it: our own installation may have packages for another version of Python. In their names
VERSION stands for the version of this interpreter. No `.pth` file in any of them is executed.
"""

import os
import runpy
import sys

_INSTALLED = ("site-packages", "dist-packages")
VERSION = "{version}"


def main() -> None:
    further = []
    arguments = sys.argv[1:]
    while arguments and arguments[0].startswith("+"):
        further.append(arguments.pop(0)[1:].replace(VERSION, sys.implementation.cache_tag))
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    first = next(
        (at for at, folder in enumerate(sys.path) if os.path.basename(folder) in _INSTALLED), len(sys.path)
    )
    sys.path[first:first] = [folder for folder in (*further, own) if folder not in sys.path]
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
