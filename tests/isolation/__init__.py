"""Trials of cells by `hermesctl doctor --isolation`, and the same attacks where there is no cell."""
