"""Restart in place: what one image of the process hands to the next."""
