"""The command-line client: imports `ipc` only and starts fast."""
