"""Walks: which files somebody opens who follows one message through the code, counted from a trace."""
