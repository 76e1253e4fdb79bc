"""A command that failed looks failed wherever a person sees it: in the feed, send, why and the log."""

import json
import shlex
from typing import Any

from tests.service import Service

COMMANDS: list[dict[str, Any]] = [
    {"command": "true"},
    {"command": "echo no such thing; exit 3"},
    {"command": "kill -KILL $$"},
    {"command": "exec sleep 60", "timeout_seconds": 0.2},
]


def test_a_failed_command_looks_failed(service: Service) -> None:
    calls = json.dumps([[{"name": "shell", "arguments": each}] for each in COMMANDS]).replace("]]", "] ]")
    sent = service.hermesctl("send", "demo", f"[[tools calls={shlex.quote(calls)}]] work")
    assert (sent.returncode, sent.stdout) == (0, "Done.\n")
    shown = [line.partition(" in ")[0] for line in sent.stderr.splitlines() if " ms" in line]
    assert shown == [
        "· demo/1 shell done",
        "· demo/1 shell failed (exit 3)",
        "· demo/1 shell failed (SIGKILL)",
        "· demo/1 shell failed (SIGTERM)",
    ]
    listener = service.listen("demo")
    listener.ending("demo/1")
    ended = [event.fields for event in listener.of_type("tool.finished")]
    assert [(each["ok"], each["exit"], each["signal"]) for each in ended] == [
        (True, 0, ""),
        (False, 3, ""),
        (False, None, "SIGKILL"),
        (False, None, "SIGTERM"),
    ]
    assert listener.of_type("turn.done")[0].fields["finish"] == "stop"
    assert "tool shell failed (exit 3) after" in service.hermesctl("why", "demo/1").stdout
    assert "ok=False ms=" in service.log()
    assert "exit=3" in service.log()
