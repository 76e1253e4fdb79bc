"""A small MCP server of our own, without the SDK: `python tool_server.py MODE`, over stdio or HTTP.

Modes: `good`; `mute` (never answers); `garbage` (prints no JSON); `exits`; `noisy` (floods stderr, prints a
banner); `names` (tools with invalid and clashing names); `http PORT`. It starts in milliseconds, because the
time in which a server must be up is short.
"""

import http.server
import json
import os
import sys
import time
from typing import Any

VERSION = "2026-07-28"
_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def tools(mode: str) -> list[dict[str, Any]]:
    names: dict[str, dict[str, Any]] = {
        "add": {"readOnlyHint": True},
        "put": {"idempotentHint": True},
        "die": {},
        "huge": {},
        "wait": {},
        "book": {},
        "secret": {},
        "where": {},
        "run": {},
    }
    if mode == "names":
        names = {"fine": {}, "not valid!": {}, "x" * 80: {}}
    listed = [{"name": name, "inputSchema": _OBJECT, "annotations": hints} for name, hints in names.items()]
    return [*listed, *listed[:1]] if mode == "names" else listed


def call(params: dict[str, Any]) -> dict[str, Any]:
    arguments, name = params.get("arguments") or {}, params["name"]
    match name:
        case "add":
            if not all(isinstance(arguments.get(each), int) for each in ("a", "b")):
                return _text("a and b must be whole numbers", is_error=True)
            return _text(str(arguments["a"] + arguments["b"]))
        case "die":
            os._exit(1)
        case "huge":
            return _text("x" * 3_000_000)
        case "wait":
            time.sleep(3600)
        case "secret":
            return _text(os.environ.get("STUB_TOKEN", "none"))
        case "where":
            return _text(f"{os.getpid()} {os.getcwd()}")
        case "run":
            with os.popen(arguments["command"]) as output:
                return _text(f"printed: {output.read()}")
        case "book":
            return _book(params)
    return _text(name)


def _book(params: dict[str, Any]) -> dict[str, Any]:
    """Asks for a seat; the state proves that a continued call is told from a new one."""
    given = (params.get("inputResponses") or {}).get("seat")
    if given is None:
        schema = {"type": "object", "properties": {"seat": {"type": "string", "enum": ["aisle", "window"]}}}
        form = {"mode": "form", "message": "Which seat?", "requestedSchema": schema}
        asked = {"seat": {"method": "elicitation/create", "params": form}}
        return {
            "resultType": "input_required",
            "inputRequests": asked,
            "requestState": f"state of {os.getpid()}",
        }
    return _text(f"booked {given['content']['seat']} with {params.get('requestState')}")


def _text(text: str, is_error: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"resultType": "complete", "content": content, "isError": is_error}


def answer(request: dict[str, Any], mode: str) -> dict[str, Any] | None:
    if "id" not in request:
        return None
    head = {"jsonrpc": "2.0", "id": request["id"]}
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match request["method"]:
        case "server/discover":
            found = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}}
            return {**head, "result": cached | found}
        case "tools/list":
            return {**head, "result": cached | {"tools": tools(mode)}}
        case "tools/call":
            return {**head, "result": call(request["params"])}
    return {**head, "error": {"code": -32601, "message": "Method not found"}}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        os.environ["STUB_TOKEN"] = self.headers.get("Authorization", "none")
        given = answer(json.loads(content), "good")
        body = json.dumps(given).encode() if given is not None else b""
        self.send_response(200 if given is not None else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def main(mode: str, *rest: str) -> None:
    if mode == "http":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(rest[0])), Handler)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    if mode == "exits":
        return
    if mode == "noisy":
        print("Welcome!", flush=True)
        sys.stderr.write("noise\n" * 200_000)
    for line in sys.stdin:
        if mode == "garbage":
            print("no JSON at all", flush=True)
        elif mode != "mute" and (given := answer(json.loads(line), mode)) is not None:
            print(json.dumps(given), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
