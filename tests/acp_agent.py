"""A small ACP agent: JSON-RPC on stdin and stdout, without the SDK; `--mode` makes it misbehave.

The text of a prompt says what it does: its last line is a command and the rest of that line its argument.

    say TEXT        streams the text word by word
    recall          says how many prompts its session has, and whether the prompt brought a record
    first           says the first prompt of its session
    spend N         reports a use of N tokens
    burst N         streams N numbered chunks
    drip N          the same, a hundred a second
    think           sends thoughts and a plan, then text
    tool COMMAND    runs a command as a tool that needs no permission, and says what that printed
    permit COMMAND  asks for permission first
    twice COMMAND   does that two times
    thrice COMMAND  does that three times
    same COMMAND    runs the command three times as a tool that needs no permission
    forever         streams until it is cancelled or killed
    hang            runs a tool that never ends, with a process below it, until the same
    announce        the same, announced by a content and nothing else
    die             is killed in the middle of a tool
    stop REASON     ends with this stop reason
    fail            answers the prompt with an error
    huge            sends a message of some megabytes, then text
    env NAME        says the value of a variable

Asked to go on with an answer that was cut off, it asks again for the permission of the prompt before, if that
needs one; else it does `recall`.

Sessions are files in $HOME/.acp_agent, each prompt a line of JSON.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

MODES = (
    "plain", "resume", "forgetful", "stateless", "garbage", "silent", "exit", "version", "sign-in", "slow",
    "chatter", "nonsense", "housed", "deaf",
)  # fmt: skip
_Json = dict[str, Any]


class Agent:
    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._folder = Path(os.environ.get("HOME", "/"), ".acp_agent")
        self._requests = 0
        self._answers: dict[int, _Json] = {}
        self._answered = threading.Condition()
        self._writing = threading.Lock()
        self._calls = 0
        self._cancelled = threading.Event()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self._answered:
                    self._answers[message["id"]] = message.get("result") or {}
                    self._answered.notify_all()
            elif message["method"] == "session/cancel" and self._mode != "deaf":
                self._cancelled.set()
            elif "id" in message:
                threading.Thread(target=self._serve, args=(message,), daemon=True).start()

    def _serve(self, request: _Json) -> None:
        params = request.get("params") or {}
        try:
            match request["method"]:
                case "initialize":
                    result = self._initialize()
                case "session/new":
                    result = self._new(params)
                case "session/load" | "session/resume":
                    result = self._load(params, replays=request["method"] == "session/load")
                case "session/prompt":
                    result = self._prompt(params)
                case _:
                    raise LookupError(-32601, "Method not found")
        except LookupError as error:
            code, text = error.args
            self._write({"id": request["id"], "error": {"code": code, "message": text}})
        else:
            self._write({"id": request["id"], "result": result})

    def _initialize(self) -> _Json:
        if self._mode == "slow":
            time.sleep(3)
        if self._mode == "housed":
            self._take_house()
        capabilities: _Json = {"loadSession": self._mode not in ("resume", "stateless")}
        if self._mode == "resume":
            capabilities["sessionCapabilities"] = {"resume": {}}
        version = 99 if self._mode == "version" else 1
        signs = [{"id": "web", "name": "Log in with a browser"}] if self._mode == "sign-in" else []
        return {"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": signs}

    def _take_house(self) -> None:
        """Makes a folder at home and uses it only later; a home that was mounted meanwhile has none."""
        self._folder.mkdir(exist_ok=True)
        while not Path(os.environ["HOME"], "mounted").exists():
            time.sleep(0.01)
        if not self._folder.exists():
            os._exit(1)

    def _new(self, params: _Json) -> _Json:
        if self._mode == "sign-in":
            raise LookupError(-32000, "Authentication required")
        self._folder.mkdir(exist_ok=True)
        session = str(uuid.uuid4())
        self._file(session).write_text("")
        return {"sessionId": session}

    def _load(self, params: _Json, replays: bool) -> _Json:
        session = params["sessionId"]
        if self._mode == "forgetful" or not self._file(session).exists():
            raise LookupError(-32002, "Resource not found")
        for prompt in self._prompts(session) if replays else ():
            self._update(session, "user_message_chunk", content={"type": "text", "text": prompt})
            self._say(session, "REPLAYED")
        return {}

    def _prompt(self, params: _Json) -> _Json:
        session, text = params["sessionId"], "".join(block["text"] for block in params["prompt"])
        with self._file(session).open("a") as file:
            print(json.dumps(text), file=file, flush=True)
        verb, _, rest = text.splitlines()[-1].partition(" ")
        if "[note: the answer above was cut off" in text:
            verb, rest = self._unfinished(session)
        known = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }
        reason = known.get(verb, self.do_say)(session, rest or verb)
        used = int(rest) if verb == "spend" else 7
        usage = {"totalTokens": used + 5, "inputTokens": used, "outputTokens": 5}
        return {"stopReason": reason or "end_turn", "usage": usage}

    def _unfinished(self, session: str) -> tuple[str, str]:
        """The command to go on with, and its argument."""
        before = self._prompts(session)[-2:-1] or ["recall"]
        verb, _, rest = before[0].splitlines()[-1].partition(" ")
        return (verb, rest) if verb == "permit" else ("recall", "")

    def do_say(self, session: str, text: str) -> None:
        for word in text.split(" "):
            self._say(session, word + " ")

    def do_recall(self, session: str, _: str) -> None:
        prompts = self._prompts(session)
        record = "a record" if "[note: the record" in prompts[-1] else "no record"
        self._say(session, f"prompt {len(prompts)}, {record}")

    def do_first(self, session: str, _: str) -> None:
        self._say(session, self._prompts(session)[0])

    def do_burst(self, session: str, count: str) -> None:
        for number in range(int(count)):
            self._say(session, f"{number} ")

    def do_drip(self, session: str, count: str) -> None:
        for number in range(int(count)):
            time.sleep(0.01)
            self._say(session, f"{number} ")

    def do_think(self, session: str, _: str) -> None:
        self._update(session, "agent_thought_chunk", content={"type": "text", "text": "a secret thought"})
        entries = [{"content": "look", "priority": "high", "status": "in_progress"}]
        self._update(session, "plan", entries=entries)
        self._update(session, "usage_update", used=10, size=100)
        self._update(session, "something_of_the_future", data=1)
        self._say(session, "thought")

    def do_tool(self, session: str, command: str) -> None:
        self._say(session, "before")
        call = self._call(session, command, rawInput={}, status="pending")
        self._update(
            session, "tool_call_update", toolCallId=call, status="in_progress", rawInput={"command": command}
        )
        self._say(session, self._run(session, call, command) or "after")

    def do_permit(self, session: str, command: str) -> None:
        call = self._call(session, command, status="pending")
        options = [
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "yes", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        described = {
            "toolCallId": call,
            "title": command,
            "kind": "execute",
            "rawInput": {"command": command},
        }
        params = {"sessionId": session, "toolCall": described, "options": options}
        outcome = self._request("session/request_permission", params).get("outcome", {})
        if outcome.get("optionId") in ("yes", "always"):
            self._run(session, call, command)
        self._say(session, f"{outcome.get('outcome')} {outcome.get('optionId', '')}".strip())

    def do_twice(self, session: str, command: str) -> None:
        self.do_permit(session, command)
        self.do_permit(session, command)

    def do_thrice(self, session: str, command: str) -> None:
        self.do_twice(session, command)
        self.do_permit(session, command)

    def do_same(self, session: str, command: str) -> None:
        for _ in range(3):
            self.do_tool(session, command)

    def do_forever(self, session: str, _: str) -> str:
        while not self._cancelled.wait(0.01):
            self._say(session, "on and ")
        return "cancelled"

    def do_hang(self, session: str, _: str) -> str:
        call = self._call(session, "sleep 1000", rawInput={"command": "sleep 1000"}, status="in_progress")
        subprocess.Popen(["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"], stdin=subprocess.DEVNULL)
        self._cancelled.wait()
        self._update(session, "tool_call_update", toolCallId=call, status="failed")
        return "cancelled"

    def do_announce(self, session: str, _: str) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": "$ sleep 1000"}}]
        self._call(session, "sleep 1000", content=content, status="pending")
        threading.Event().wait()

    def do_die(self, session: str, _: str) -> None:
        self._say(session, "going to ")
        self._call(session, "rm it", rawInput={"command": "rm it"}, status="in_progress")
        print("the disk is gone", os.environ.get("TOKEN", ""), file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def do_stop(self, session: str, reason: str) -> str:
        self._say(session, "cut")
        return reason

    def do_fail(self, session: str, _: str) -> None:
        raise LookupError(-32603, "the model is out of credit")

    def do_huge(self, session: str, _: str) -> None:
        call = self._call(session, "cat", rawInput={"command": "cat"}, status="in_progress")
        content = [{"type": "content", "content": {"type": "text", "text": "x" * 3_000_000}}]
        self._update(session, "tool_call_update", toolCallId=call, status="completed", content=content)
        self._say(session, "read")

    def do_env(self, session: str, name: str) -> None:
        self._say(session, f"{name}={os.environ.get(name, '')}")

    def do_nothing(self, session: str, _: str) -> None:
        pass

    def _run(self, session: str, call: str, command: str) -> str:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        output = done.stdout + done.stderr
        content = [{"type": "content", "content": {"type": "text", "text": output}}]
        status = "completed" if done.returncode == 0 else "failed"
        self._update(session, "tool_call_update", toolCallId=call, status=status, content=content)
        return output

    def _call(self, session: str, title: str, **fields: Any) -> str:
        self._calls += 1
        call = f"call_{self._calls}"
        self._update(session, "tool_call", toolCallId=call, title=title, kind="execute", **fields)
        return call

    def _say(self, session: str, text: str) -> None:
        self._update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def _update(self, session: str, what: str, **fields: Any) -> None:
        update = {"sessionUpdate": what, **fields}
        self._write({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def _request(self, method: str, params: _Json) -> _Json:
        with self._answered:
            self._requests += 1
            number = self._requests
            self._write({"id": number, "method": method, "params": params})
            self._answered.wait_for(lambda: number in self._answers)
            return self._answers[number]

    def _write(self, message: _Json) -> None:
        with self._writing:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def _file(self, session: str) -> Path:
        return self._folder / session

    def _prompts(self, session: str) -> list[str]:
        return [json.loads(line) for line in self._file(session).read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=MODES, default="plain")
    mode = parser.parse_args().mode
    match mode:
        case "exit":
            sys.exit("no such model")
        case "garbage":
            while True:
                print("Welcome to the agent!", flush=True)
        case "chatter":
            print("Welcome to the agent!", flush=True)
            mode = "plain"
        case "nonsense":
            sys.stdin.readline()
            print('{"jsonrpc": "2.0", "id": 0, "result": [1, 2]}', flush=True)
        case "silent":
            signal.pause()
    Agent(mode).run()


if __name__ == "__main__":
    main()
