"""Tests of several hosts on one journal."""
