"""Of the stand-in: the hooks of its plugins."""
