"""How the host is, measured beside the engine; the rules decide what follows from it."""
