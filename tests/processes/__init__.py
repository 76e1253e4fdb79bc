"""Cells and the processes in them: real namespaces, cgroups and signals, seen from outside."""
