"""Writes the parts of `docs/reference/http.md` that are made from the program: the endpoints with a curl line each, the
problems.

python -m tests.docs.http_page
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from quire.operations.problems import KINDS
from quire.server.endpoints import Endpoint
from quire.server.routes import ENDPOINTS

PAGE = Path(__file__).parents[2] / "docs" / "reference/http.md"

GROUPS = (
    (
        "The workspace",
        r"/$|/openapi|/now|/pulse|/letters|/search|/artifacts|/models|/health|/doctor|/trust|/docs|/qr|/bell",
    ),
    ("Documents", r"/documents|/codes"),
    ("Runs", r"/runs|/shares"),
    ("Questions", r"/questions"),
    ("Streams", r"/events"),
    ("Webhooks", r"/webhooks"),
)
"""The sections of the reference, by the beginning of the path. Paths of none of them come under the first."""

BODIES = {
    "enable_trigger": '{"digest": "DIGEST"}',
    "backfill_trigger": '{"since": "2026-11-01", "until": "2026-11-02"}',
    "language": '{"session": "my-tab", "messages": [{"method": "textDocument/didOpen", "params": {"textDocument": '
    '{"version": 1, "text": "# Hello"}}}]}',
    "check_text": '{"text": "# Hello", "path": "hello.playbook.md"}',
    "save_document": '{"text": "# Hello\\n\\n## STEP 1: Say\\n\\nSay hello."}',
    "preview_prompt": '{"inputs": {"version": "2.0"}, "step": "1"}',
    "preflight": '{"inputs": {"version": "2.0"}, "budget": 0.5}',
    "start_run": '{"document": "DOCUMENT", "inputs": {"version": "2.0"}}',
    "resume_run": '{"budget": 1.5}',
    "resume_runs": '{"runs": ["RUN"], "budget": 2, "dry_run": true}',
    "try_step": '{"path": "1", "prompt": "Say hello in one word.", "dry_run": true}',
    "fork_run": '{"from": "1", "answers": {"2": "no"}}',
    "preview_fork": '{"from": "1"}',
    "list_actions": '{"runs": ["RUN"]}',
    "prune_runs": '{"older_than": 2592000, "dry_run": true}',
    "answer_question": '{"value": "yes", "hash": "HASH"}',
    "answer_questions": '{"answers": [{"run": "RUN", "path": "2/ask", "hash": "HASH", "value": "yes"}]}',
    "import_run": '{"text": "EXPORT"}',
    "verify_export": '{"text": "EXPORT"}',
}
QUERIES = {
    "list_runs": "status=failed&limit=20",
    "list_documents": "finding=error",
    "search": "q=invoice",
    "show_document": "fields=outline,bounds",
    "list_effects": "columns=1&limit=500",
    "show_tree": "under=1&order=slowest",
    "show_artifact": "as=download",
    "page_events": "run=RUN:0",
}
HEADERS = {"save_document": "If-Match: ETAG", "run_events": "Accept: text/event-stream"}
PATHS = {"run": "RUN", "a": "RUN", "b": "OTHER", "id": "DOCUMENT", "code": "PB106", "name": "team", "path": "2"}
PATHS |= {"share": "SHARE"}
LAST = {
    "show_question": "2/ask",
    "answer_question": "2/ask",
    "show_effect": "1/model",
    "show_prompt": "1",
    "read_text": "1",
}


def written() -> str:
    """The page with its made parts as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    text = _replaced(text, "endpoints", "\n\n".join(_reference()))
    return _replaced(text, "problems", "\n".join(_problems()))


def _replaced(text: str, name: str, made: str) -> str:
    begin, end = f"<!-- made: {name} -->", f"<!-- end: {name} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"docs/reference/http.md has no {begin}"
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def _problems() -> Iterator[str]:
    yield "| code | status | meaning |"
    yield "| --- | --- | --- |"
    for code, kind in KINDS.items():
        yield f"| `{code}` | {kind.status} | {kind.title}. {kind.meaning} |"


def _reference() -> Iterator[str]:
    groups: dict[str, list[Endpoint]] = {name: [] for name, _ in GROUPS}
    for endpoint in ENDPOINTS:
        # The stream of a run is a stream, although its path begins like that of a run.
        pattern = "/events" if endpoint.path.endswith("/events") else endpoint.path
        name = next((name for name, begins in GROUPS if re.match(begins, pattern)), GROUPS[0][0])
        groups[name].append(endpoint)
    for name, endpoints in groups.items():
        if endpoints:
            yield f"### {name}"
            yield from map(_entry, endpoints)


def _entry(endpoint: Endpoint) -> str:
    lines = [f"**`{endpoint.method} {endpoint.template}`** {endpoint.cost}. {endpoint.summary}"]
    if endpoint.parameters:
        lines.append("Query: " + ", ".join(f"`{one.name}`" for one in endpoint.parameters) + ".")
    if endpoint.body is not None and (members := endpoint.body.get("properties")):
        needed = endpoint.body.get("required") or ()
        assert isinstance(members, dict) and isinstance(needed, list | tuple)
        told = [f"`{name}`{' (needed)' if name in needed else ''}" for name in members]
        lines.append("Body: " + ", ".join(told) + ".")
    return "\n".join(lines) + f"\n\n```console\n$ {curl(endpoint)}\n```"


def curl(endpoint: Endpoint) -> str:
    """A curl line for an endpoint. Words in capitals stand for values."""
    path = endpoint.template
    for name in endpoint.path_names:
        value = LAST.get(endpoint.name, PATHS.get(name, "NAME")) if name == "path" else PATHS.get(name, "NAME")
        path = path.replace(f"{{{name}}}", value)
    query = f"?{QUERIES[endpoint.name]}" if endpoint.name in QUERIES else ""
    parts = ["curl", '-H "$AUTH"']
    if endpoint.name in HEADERS:
        parts.append(f"-H '{HEADERS[endpoint.name]}'")
    if "event-stream" in f"{endpoint.media} {HEADERS.get(endpoint.name, '')}":
        parts.append("-N")
    if endpoint.method not in ("GET", "POST"):
        parts.append(f"-X {endpoint.method}")
    if endpoint.body is not None:
        parts.append(f"--json '{BODIES.get(endpoint.name, '{}')}'")
    elif endpoint.method != "GET":
        parts.append("-H 'Content-Type: application/json'")
    address = f"$QUIRE{path}{query}"
    return " ".join([*parts, f'"{address}"' if query else address])


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
