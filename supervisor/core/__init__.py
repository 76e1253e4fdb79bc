"""The core: every decision about sessions, turns and workers, as one pure function; no I/O, no clock."""
