"""Why a worker or an attempt ended: a kind for programs, and one sentence for people made from it.

The code that decides or sees an end names its kind. Rules and metrics compare kinds; events, journal and logs
show the sentence, which is made here and nowhere else. The detail of a kind is the part of its sentence that
is not the same each time. Where a sentence is the detail alone, it was made where the end was seen: a status
with the last line of a log, a breach of the protocol, an error of the agent.
"""

from dataclasses import dataclass
from enum import StrEnum


class EndReason(StrEnum):
    # Workers that the rules end.
    INTERRUPT = "interrupt"
    DEADLINE = "deadline"
    SILENT = "silent"
    RECYCLED = "recycled"
    MADE_ROOM = "made_room"
    RENEWED = "renewed"
    RETIRED = "retired"
    NEVER_READY = "never_ready"
    NO_PULSE = "no_pulse"
    LOOP_STILL = "loop_still"
    TOO_MUCH_TEXT = "too_much_text"
    TURN_OVER = "turn_over"
    TURN_UNKNOWN = "turn_unknown"
    # Workers that are of no use to the host any more.
    NOT_CONNECTED = "not_connected"
    NOT_READING = "not_reading"
    NOT_RECALLED = "not_recalled"
    LINE_CLOSED = "line_closed"
    BAD_FRAME = "bad_frame"
    BROKE_PROTOCOL = "broke_protocol"
    NO_WORKSPACE = "no_workspace"
    OVER_QUOTA = "over_quota"
    # Processes that are gone.
    EXITED = "exited"
    MEMORY = "memory"
    NOT_STARTED = "not_started"
    ZYGOTE_ENDED = "zygote_ended"
    LEASE_GIVEN_UP = "lease_given_up"
    KILLED = "killed"
    KILLED_UNSTARTED = "killed_unstarted"
    # Attempts that are lost while their worker lives, or with the supervisor.
    ATTEMPT_FAILED = "attempt_failed"
    MODEL_AWAY = "model_away"
    GIVEN_BACK = "given_back"
    SERVICE_STOPPED = "service_stopped"
    SUPERVISOR_ENDED = "supervisor_ended"
    HOST_LOST = "host_lost"
    ORPHANED = "orphaned"


_SENTENCES = {
    EndReason.INTERRUPT: "interrupt",
    EndReason.DEADLINE: "deadline",
    EndReason.SILENT: "no progress for {}",
    EndReason.RECYCLED: "recycled",
    EndReason.MADE_ROOM: "makes room",
    EndReason.RENEWED: "renewed",
    EndReason.RETIRED: "retired",
    EndReason.NEVER_READY: "it was not ready in time",
    EndReason.NO_PULSE: "its process gave no sign of life for {}",
    EndReason.LOOP_STILL: "its loop stood still for {}",
    EndReason.TOO_MUCH_TEXT: "its text has more than {} characters",
    EndReason.TURN_OVER: "its turn ended with the restart",
    EndReason.TURN_UNKNOWN: "it does not have the turn it was given before the restart",
    EndReason.NOT_CONNECTED: "it is not connected",
    EndReason.NOT_READING: "it does not read its frames",
    EndReason.NOT_RECALLED: "it did not answer after the restart",
    EndReason.LINE_CLOSED: "it has closed its line to the supervisor",
    EndReason.BAD_FRAME: "it sent a frame that cannot be {}",
    EndReason.BROKE_PROTOCOL: "{}",
    EndReason.NO_WORKSPACE: "it cannot have its session's workspace: {}",
    EndReason.OVER_QUOTA: "its workspace holds {}",
    EndReason.EXITED: "{}",
    EndReason.MEMORY: "it used more than {} of memory",
    EndReason.NOT_STARTED: "could not be started: {}",
    EndReason.ZYGOTE_ENDED: "{}",
    EndReason.LEASE_GIVEN_UP: "this host could not renew its lease in time, so all its workers were ended",
    EndReason.KILLED: "killed by the supervisor",
    EndReason.KILLED_UNSTARTED: "killed before it was started",
    EndReason.ATTEMPT_FAILED: "{}",
    EndReason.MODEL_AWAY: "{}",
    EndReason.GIVEN_BACK: "{}; the turn waits for the answer without a seat",
    EndReason.SERVICE_STOPPED: "the service was stopped",
    EndReason.SUPERVISOR_ENDED: "the supervisor ended while it ran",
    EndReason.HOST_LOST: "its host was lost, and another one has taken the session over",
    EndReason.ORPHANED: "it was left by an earlier supervisor",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One end: `str()` is its sentence."""

    kind: EndReason
    detail: str = ""

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format(self.detail)
