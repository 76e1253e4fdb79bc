"""Tests: sentences about the whole house, on real processes, sockets and files."""
