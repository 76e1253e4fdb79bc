"""Frames that nobody would write, at a real supervisor: it lives, answers each, and does not grow."""
