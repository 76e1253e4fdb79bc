"""Tests of the embedded model with its real weights."""
