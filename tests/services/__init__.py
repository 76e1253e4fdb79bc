"""Tests of the services: real processes that crash, fall silent or serve."""
