"""The process and its host: signals, threads, shutdown, folders, disk space, CPUs."""
