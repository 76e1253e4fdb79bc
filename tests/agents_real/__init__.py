"""Real agents and MCP servers behind the service, for `make test-agents`; `make test` leaves them out."""
