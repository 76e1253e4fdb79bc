"""Counters of the gateway itself, in Prometheus' text format."""

from collections import Counter


class Traffic:
    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._cuts = 0

    def answered(self, status: int) -> None:
        self._answers[f"{status // 100}xx"] += 1

    def cut(self) -> None:
        """A reader was too slow, and its stream was ended."""
        self._cuts += 1

    def text(self, streams: int) -> str:
        answers = (
            f'hermes_gateway_answers_total{{status="{status}"}} {count}'
            for status, count in sorted(self._answers.items())
        )
        lines = [
            "# HELP hermes_gateway_answers_total Requests that were answered, by the class of the status.",
            "# TYPE hermes_gateway_answers_total counter",
            *answers,
            "# HELP hermes_gateway_streams Open event streams and sockets.",
            "# TYPE hermes_gateway_streams gauge",
            f"hermes_gateway_streams {streams}",
            "# HELP hermes_gateway_streams_cut_total Streams of readers that were too slow.",
            "# TYPE hermes_gateway_streams_cut_total counter",
            f"hermes_gateway_streams_cut_total {self._cuts}",
        ]
        return "\n".join(lines) + "\n"
