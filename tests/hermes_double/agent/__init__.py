"""Of the stand-in: how it reads the usage of a reply."""
