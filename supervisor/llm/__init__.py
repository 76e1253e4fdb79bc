"""The language model: where turns find it, and the embedded one."""
