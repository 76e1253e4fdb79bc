"""The journal: the SQLite file that is the truth, opened by one process at a time."""
