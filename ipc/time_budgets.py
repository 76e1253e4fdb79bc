"""Time limits of start, stall and stop, shared by the supervisor, hermesctl and systemd.

The order: a stop ends by itself < hermesctl kills < systemd kills; a stall is noticed before that too.
"""

# From the request to the end of the process, whatever workers and services do. Killing takes milliseconds;
# the rest is for a kernel that frees much memory, and for a disk that is slow to write the last commit.
STOP_SECONDS = 8.0
# The part of it for the end of the processes; the rest is for the journal.
PROCESSES_END_SECONDS = 5.0
# A service has this long to end by itself, then it is killed: it has nothing that must be kept.
SERVICE_OWN_END_SECONDS = 0.3
# When the client that requested the stop kills: the supervisor's own alarm comes first.
STOP_PATIENCE_SECONDS = STOP_SECONDS + 2.0
# An engine whose loop has not run for this long is stuck: a failing disk takes ten seconds.
WATCHDOG_SECONDS = 15.0
# systemd waits this long after its request, and after its watchdog's signal, before it kills.
UNIT_STOP_SECONDS = 20.0
# Time to load and check a large journal on a slow disk.
START_SECONDS = 120.0
