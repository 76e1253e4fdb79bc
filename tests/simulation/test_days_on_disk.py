"""A few of the cruel days on a real SQLite file, which in the end has what the journal in memory has."""

from tests.simulation.days import CrueltyOnDisk, days

# A day on disk takes twenty times as long.
_EXAMPLES = 8

TestCrueltyOnDisk = CrueltyOnDisk.TestCase
TestCrueltyOnDisk.settings = days(_EXAMPLES, derandomize=True)
