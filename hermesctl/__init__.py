"""The hand: the commands a person types; a client that imports `ipc` only and starts fast."""
