"""Sessions of `hermesctl agents try`: the name of such a session says which agent answers in it."""

SESSIONS = "try:"


def session_of(agent: str, trial: str) -> str:
    """Returns the session of one trial of this agent."""
    return f"{SESSIONS}{agent}:{trial}"


def agent_of(session: str) -> str:
    """Returns the agent that is tried in this session; empty for every other session."""
    return session.removeprefix(SESSIONS).rpartition(":")[0] if session.startswith(SESSIONS) else ""
