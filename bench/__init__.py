"""Measurements: each puts our path beside the raw limit of the same machine in the same minute."""
