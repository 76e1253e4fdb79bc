"""One attempt at a time: the process that runs an agent; imports the wire and nothing else of ours."""
