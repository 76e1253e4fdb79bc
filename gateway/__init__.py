"""The gateway: serves HTTP and WebSocket clients, as a client of the supervisor in a process of its own."""
