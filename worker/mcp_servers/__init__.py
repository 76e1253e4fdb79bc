"""MCP servers of an agent: started with its worker, inside the cell, and restarted when they die."""
