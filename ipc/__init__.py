"""The protocol between processes and the sockets that carry it; imports no other package of this project."""
