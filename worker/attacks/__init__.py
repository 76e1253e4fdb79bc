"""Harmless forms of the known attacks, run inside a cell by `python -m worker.attacks TARGETS`.

Each is a function of the targets that returns the result. None knows the expected result: whether an open one
is a fault depends on the settings, and is judged outside (hermesctl/doctor/promises.py).
"""
