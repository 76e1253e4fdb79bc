"""The rules of a client without I/O: which turn answers a message, and where an event stream resumes."""
