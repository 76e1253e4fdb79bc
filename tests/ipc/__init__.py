"""Tests of the wire: frames, sockets and places, with real sockets and real folders."""
