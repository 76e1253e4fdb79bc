"""The host: decides, remembers, and holds every other process; no agent, tool, HTTP or TLS code runs here."""
