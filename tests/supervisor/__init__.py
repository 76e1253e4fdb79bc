"""The parts of the supervisor between the rules and the wire."""
