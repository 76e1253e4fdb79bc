"""The command-line client: imports little, and starts fast."""
