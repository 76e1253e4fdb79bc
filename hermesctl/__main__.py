"""`python -m hermesctl`: the same as the installed command."""

import sys
from os.path import abspath, dirname

if not sys.flags.safe_path:
    # `-m` puts the working directory first, which may belong to any user. This is the folder of our packages.
    sys.path[0] = dirname(dirname(abspath(__file__)))

from hermesctl.main import main

main()
