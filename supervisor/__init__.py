"""The supervisor: decides, writes the journal, holds every other process; no agent, tool or HTTP code."""
