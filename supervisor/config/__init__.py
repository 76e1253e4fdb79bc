"""Settings: hermes.toml read, checked, reloaded, and the values derived from it."""
