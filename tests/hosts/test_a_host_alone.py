"""A host with its journal in a file pays nothing for others: neither the driver nor any part is imported."""

import subprocess
import sys

_OTHERS = ("psycopg", "supervisor.hosts", "supervisor.journal.postgres")
_LOADED = f"""
import sys
import supervisor.entry
print(*(name for name in sys.modules if name.startswith({_OTHERS})))
"""


def test_nothing_of_several_hosts_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", _LOADED], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.strip() == ""
