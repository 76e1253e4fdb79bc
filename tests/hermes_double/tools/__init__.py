"""Tools of the stand-in, which it runs in the thread of its turn."""
