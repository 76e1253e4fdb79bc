"""The journal on real files: what was acknowledged is there, what was refused is not, and history is free."""
