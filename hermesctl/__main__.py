"""`python -m hermesctl`: the same as the installed command."""

import sys
from os.path import abspath, dirname

if not sys.flags.safe_path:
    # `-m` has put the working directory first, which may be anybody's folder. Our packages lie in this one.
    sys.path[0] = dirname(dirname(abspath(__file__)))

from hermesctl.main import main

main()
