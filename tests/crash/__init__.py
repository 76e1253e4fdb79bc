"""Crashes at every named point: what the journal and the clients must still agree on afterwards."""
