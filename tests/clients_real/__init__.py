"""Real clients of the OpenAI API against a real gateway and supervisor; run by `make test-clients`."""
