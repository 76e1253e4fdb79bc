"""The wire: all that crosses a process boundary, and the sockets that carry it; imports nothing of ours."""
