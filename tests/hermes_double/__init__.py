"""A stand-in for the modules of hermes-agent 0.19 that the kind `hermes` uses."""
