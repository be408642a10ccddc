"""An MCP server that misbehaves in one way, named by its first argument. Plain Python: it starts in no time.

The second argument marks its processes, so that a test can see that none of them is left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

MODE = sys.argv[1] if __name__ == "__main__" else ""
OUT = sys.stdout.buffer
OBJECT = {"type": "object"}
Message = dict[str, Any]


def raw(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def send(message: object) -> None:
    raw(json.dumps(message).encode() + b"\n")


def answer(request: Message, result: object) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tool(name: object, schema: object = OBJECT, **more: object) -> Message:
    return {"name": name, "description": "d", "inputSchema": schema} | more


def text(said: object) -> Message:
    return {"content": [{"type": "text", "text": said}]}


def notify(method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


def ask(number: int, method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def for_ever(*pieces: bytes) -> None:
    while True:
        for piece in pieces:
            raw(piece)


def exponential(levels: int, keyword: str = "allOf") -> Message:
    defs: Message = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)
    }
    defs[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}


def nested(levels: int) -> Message:
    inner: Message = {"type": "string"}
    for _ in range(levels):
        inner = {"properties": {"a": inner}}
    return {"type": "object", **inner}


def recursive() -> Message:
    way = {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}}, "required": ["l"]}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"anyOf": [way, way]}}}


BAD_TOOLS: dict[str, list[Message]] = {
    "exponential": [tool("bad", exponential(60))],
    "exponential-any": [tool("bad", exponential(60, "anyOf"))],
    "nested": [tool("bad", nested(200))],
    "itself": [tool("bad", {"type": "object", "allOf": [{"$ref": "#"}]})],
    "recursive": [tool("bad", recursive())],
    "not-an-object": [tool("bad", 5)],
    "another-type": [tool("bad", {"type": "string"})],
    "remote": [tool("bad", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/s.json"}}})],
    "wide": [tool("bad", {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30_000)}})],
    "choices": [tool("bad", {"type": "object", "properties": {"x": {"enum": list(range(100_000))}}})],
    "patterns": [tool("bad", {"type": "object", "properties": {f"p{n}": {"pattern": "a{900}"} for n in range(500)}})],
    "number": [tool("bad", {"type": "object", "minProperties": 10**30})],
    "output": [tool("bad", outputSchema=exponential(60))],
    "twice-listed": [tool("bad"), tool("bad", {"type": "object", "required": ["x"]})],
}

ODD_TOOLS: dict[str, list[Any]] = {
    "odd-names": [tool(name) for name in ("", "a\nb", "\x1b[2Jx", "\u202etxt", "x" * 5000, 7, None)] + [5, None, []],
    "invalid-schema": [tool("odd", {"type": "object", "properties": {"x": {"type": 5}}, "required": "x"})],
    "odd-annotations": [tool("odd", annotations={"readOnlyHint": "yes", "title": 7}, title=[], icons=3, _meta=1)],
    "slow-pattern": [tool("odd", {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}})],
    "looking-pattern": [tool("odd", {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?!b)"}}})],
    "underscores": [tool("odd__name__x"), tool("__"), tool("quire__shell"), tool("file__write")],
    "quoting": [
        tool("odd", {"type": "object", "title": os.environ.get("LEAKED", "")}, description=os.environ.get("LEAKED"))
    ],
    "many": [tool(f"t{n}") for n in range(20_000)],
}


def tools(request: Message) -> None:
    cursor = (request.get("params") or {}).get("cursor")
    good = [tool("work")]
    match MODE:
        case "gossip":
            answer(request, {"tools": [tool(name) for name in ("environment", "fail", "large")]})
        case "endless-pages":
            number = int(cursor or 0)
            answer(request, {"tools": [tool(f"t{number}-{n}") for n in range(50)], "nextCursor": str(number + 1)})
        case "same-cursor":
            answer(request, {"tools": good, "nextCursor": "again"})
        case "huge-schema":
            answer(request, {"tools": [tool("bad", {"type": "object", "description": "x" * 50_000_000}), *good]})
        case "tools-are-text":
            answer(request, {"tools": "work"})
        case "cursor-is-a-list":
            answer(request, {"tools": good, "nextCursor": []})
        case "too-deep":
            raw(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"work","inputSchema":' % request["id"])
            raw(b'{"not":' * 50_000 + b"{}" + b"}" * 50_000 + b"}]}}\n")
        case "output-lies":
            schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
            answer(request, {"tools": [tool("work", outputSchema=schema)]})
        case _:
            answer(request, {"tools": [*BAD_TOOLS.get(MODE, ()), *ODD_TOOLS.get(MODE, ()), *good]})


def call(request: Message) -> None:
    done = {"jsonrpc": "2.0", "id": request["id"], "result": text("done")}
    match MODE:
        case "gossip":
            gossip(request)
        case "endless-line":
            raw(b'{"jsonrpc":"2.0","id":%d,"result":"' % request["id"])
            for_ever(b"x" * 65536)
        case "huge-line":
            answer(request, text("x" * 20_000_000))
        case "dripping":
            while True:
                raw(b" ")
                time.sleep(0.01)
        case "wrong-ids":
            for number in (request["id"] + 1, -1, "x", 10**30, None, [1], True):
                send({**done, "id": number})
        case "twice":
            for _ in range(3):
                send(done)
        case "progress-flood":
            for_ever(notify("notifications/progress", progressToken=request["id"], progress=1) * 50)
        case "log-flood":
            for_ever(notify("notifications/message", level="info", data="x" * 500) * 50)
        case "changed-flood":
            for_ever(notify("notifications/tools/list_changed") * 50)
        case "cancelled-flood":
            for_ever(notify("notifications/cancelled", requestId=request["id"]) * 50)
        case "sampling-flood":
            asked = {"messages": [], "maxTokens": 1}
            for_ever(*(ask(number, "sampling/createMessage", **asked) for number in range(1000)))
        case "roots-flood":
            for_ever(*(ask(number, "roots/list") for number in range(1000)))
        case "elicitation-flood":
            asked = {"message": "your password?", "requestedSchema": OBJECT}
            for_ever(*(ask(number, "elicitation/create", **asked) for number in range(1000)))
        case "garbage":
            raw(bytes(range(256)) * 100 + b"\n")
            send(done)
        case "garbage-for-ever":
            for_ever(bytes(range(256)) + b"\n")
        case "not-utf-8":
            raw(json.dumps(done).encode().replace(b"done", b"d\xff\xfene") + b"\n")
        case "wrong-types":
            answer(request, {"content": 5, "isError": []})
        case "result-is-null":
            send({**done, "result": None})
        case "error-is-text":
            send({"jsonrpc": "2.0", "id": request["id"], "error": "no"})
        case "both":
            send({**done, "error": {"code": 1, "message": "no"}})
        case "deep":
            body = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
            raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":%b}}\n' % (request["id"], body))
        case "huge-number":
            number = b"9" * 100_000
            raw(
                b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"n":%b}}}\n'
                % (request["id"], number)
            )
        case "nan":
            raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"n":NaN}}}\n' % request["id"])
        case "closes-stdout":
            OUT.close()
            os.close(1)
            time.sleep(600)
        case "exits":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        case "quoting-last-words":
            kept = int(os.environ["KEPT"])
            print(os.environ["LEAKED"] + "y" * (4_096 - kept), file=sys.stderr, end="", flush=True)
            os._exit(3)
        case "grandchild":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[2]])
            os._exit(3)
        case "stderr-flood":
            line = b"e" * 65535 + b"\n"
            for _ in range(2000):
                os.write(2, line)
            send(done)
        case "complains-for-ever":
            answer(request, {"isError": True, **text("no! " * 500_000)})
        case "input-for-ever":
            form = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": OBJECT}}
            answer(request, {"resultType": "input_required", "inputRequests": {"a": form}})
        case "output-lies":
            answer(request, {"content": [], "structuredContent": {"n": "one"}})
        case _:
            send(done)


def gossip(request: Message) -> None:
    """What it was told, or knows of its environment."""
    params = request["params"]
    given = params.get("arguments") or {}
    match params["name"]:
        case "environment":
            answer(request, text(os.environ.get(given["name"], "not set")))
        case "fail":
            answer(request, {"isError": True, **text(f"the key {given['key']} is not good")})
        case _:
            answer(request, text("x" * 2_000_000))


def prompt(request: Message) -> None:
    said = "x" * {"huge-prompt": 100_000_000, "large-prompt": 2_000_000}.get(MODE, 10)
    answer(request, {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})


def initialize(request: Message) -> None:
    if MODE == "no-version":
        answer(request, {"protocolVersion": 7})
        return
    info = {"name": "m", "version": "1"}
    capabilities: Message = {"tools": {}, "prompts": {}}
    answer(request, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})


HANDLERS: dict[str, Callable[[Message], None]] = {
    "initialize": initialize,
    "tools/list": tools,
    "tools/call": call,
    "prompts/get": prompt,
}


def serve() -> None:
    match MODE:
        case "endless-line-at-once":
            for_ever(b"x" * 65536)
        case "answers-before-asked":
            for number in range(10):
                send({"jsonrpc": "2.0", "id": number, "result": text("early")})
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "reads-nothing":
            pass
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if "id" not in request or f"silent:{method}" == MODE:
            continue
        if method in HANDLERS:
            HANDLERS[method](request)
            if MODE == "reads-nothing" and method == "tools/list":
                time.sleep(600)
        elif method:
            send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}})
    if MODE == "stubborn":
        time.sleep(600)


if __name__ == "__main__":
    try:
        serve()
    except BrokenPipeError:
        os._exit(1)
