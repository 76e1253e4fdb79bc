"""Clip in, transcript out: speech to text as a supervised child; imports `ipc` only."""
