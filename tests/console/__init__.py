"""The web console in a real browser."""
