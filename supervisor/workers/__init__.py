"""The worker side: links to worker processes, assignments, and the workspaces of sessions."""
