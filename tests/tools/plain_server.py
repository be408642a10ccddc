"""An MCP server without a library: it says exactly what a table says, errors of any code included."""

from __future__ import annotations

import json
import sys
from typing import Any

IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
BLOB = {"type": "resource", "resource": {"uri": "file:///x.bin", "mimeType": "application/pdf", "blob": "AAAA"}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


RESULTS: dict[str, dict[str, Any]] = {
    "object": {"content": [text('{"a": [1, 1.5]}')]},
    "array": {"content": [text(' [{"a": 1}] ')]},
    "number": {"content": [text("1.10")]},
    "prose": {"content": [text("{not json}")]},
    "both": {"content": [text("three apples")], "structuredContent": {"count": 3}},
    "structured": {"content": [], "structuredContent": {"count": 3}},
    "mixed": {"content": [text("before"), IMAGE, text("between"), BLOB, text("after")]},
    "image": {"content": [IMAGE]},
    "nothing": {"content": []},
}
ERRORS = {"overloaded": (-32000, "the pool is empty"), "late": (-32001, "the backend gave up"), "odd": (-32050, "odd")}


def tools() -> list[dict[str, Any]]:
    listed = [
        {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        for name in (*RESULTS, *ERRORS, "calls", "capabilities")
    ]
    return [*listed, {"name": "typeless", "inputSchema": {"properties": {"x": {"type": "string"}}}}]


def main() -> None:
    calls, seen = 0, ""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, params = message["method"], message.get("params") or {}
        answer: dict[str, Any] = {"result": {}}
        if method == "initialize":
            offered = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
            answer = {"result": {**offered, "serverInfo": {"name": "plain", "version": "1"}}}
            seen = json.dumps(params["capabilities"])
        elif method == "tools/list":
            answer = {"result": {"tools": tools()}}
        elif method == "tools/call":
            name, calls = params["name"], calls + 1
            if name in ERRORS:
                code, said = ERRORS[name]
                answer = {"error": {"code": code, "message": said}}
            else:
                said = seen if name == "capabilities" else str(calls)
                answer = {"result": RESULTS.get(name, {"content": [text(said)]})}
        elif method != "ping":
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
