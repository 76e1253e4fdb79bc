"""Tests of the worker: the model client, the agent, the attempt and the life of a worker process."""
