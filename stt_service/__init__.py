"""Speech to text as a supervised child process: clips in, transcripts out; imports `ipc` only."""
