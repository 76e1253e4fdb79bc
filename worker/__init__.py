"""The process that runs an agent, one attempt at a time; imports `ipc` and no other package of ours."""
