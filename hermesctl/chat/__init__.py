"""The terminal chat: a log of the session's events, a connection to the supervisor, and a screen."""
