"""Harmless forms of the known attacks, run inside a cell by `python -m worker.attacks TARGETS`.

Each is a function of the targets that says what came of it. None is told what is expected: whether an open
one is a fault depends on the settings, and is judged outside (hermesctl/doctor/promises.py).
"""
