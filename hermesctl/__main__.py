"""`python -m hermesctl`: the same as the installed command."""

from hermesctl.main import main

main()
