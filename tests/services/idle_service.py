"""A service that does nothing: for tests that say themselves what was heard of it."""

import signal

if __name__ == "__main__":
    signal.pause()
