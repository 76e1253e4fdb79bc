"""The terminal chat: events folded into what is shown, a line to the supervisor, and a screen to type at."""
