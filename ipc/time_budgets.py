"""How long starting, standing still and stopping may take: for the supervisor, hermesctl and systemd alike.

a stop ends by itself < hermesctl kills < systemd kills, and a standstill is noticed before that too
"""

# From the request to the end of the process, whatever workers and services do. Killing takes milliseconds;
# the rest is for a kernel that frees much memory, and for a disk that is slow to take the last commit.
STOP_SECONDS = 8.0
# The part of it that processes have to end; what is left over is the journal's.
PROCESSES_END_SECONDS = 5.0
# A service may end in its own way for this long, then it is killed: it holds nothing that must be kept.
SERVICE_OWN_END_SECONDS = 0.3
# When whoever asked for the stop kills: the supervisor's own alarm must have had its chance.
STOP_PATIENCE_SECONDS = STOP_SECONDS + 2.0
# An engine that has not turned for this long is stuck: a disk in deep trouble takes ten seconds.
WATCHDOG_SECONDS = 15.0
# What systemd waits after its own request, and after the signal of its watchdog, before it kills.
UNIT_STOP_SECONDS = 20.0
# Loading and checking a large journal on a slow disk.
START_SECONDS = 120.0
