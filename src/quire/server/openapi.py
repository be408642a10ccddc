"""The description of the API, made from the route table: OpenAPI 3.1 for programs, and a page for people, which has no
script and no style from elsewhere and can be read offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

from quire import __version__
from quire.server.endpoints import PROBLEM
from quire.values import encode

if TYPE_CHECKING:
    from quire.server.endpoints import Endpoint
    from quire.values import Value

_PROBLEM: Mapping[str, Value] = {
    "description": "A problem as RFC 9457 describes it.",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_PROBLEM_SCHEMA: Mapping[str, Value] = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string"},
        "help": {"type": "string"},
        "exit_code": {"type": "integer"},
    },
    "required": ["type", "title", "status", "detail", "code", "help", "exit_code"],
}


def describe(endpoints: Iterable[Endpoint], base: str) -> dict[str, Value]:
    """Return the description. `base` is the path below which the server is reached."""
    paths: dict[str, dict[str, Value]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quire", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": f"{base}/api/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM_SCHEMA},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Value]:
    parameters: list[Value] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in endpoint.path_names
    ]
    for one in endpoint.parameters:
        schema: Value = {"type": "array", "items": one.schema} if one.many else one.schema
        parameters.append({"name": one.name, "in": "query", "description": one.description, "schema": schema})
    operation: dict[str, Value] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"{endpoint.cost}.",
        "x-cost": endpoint.cost,
        "parameters": parameters,
        "responses": {
            str(endpoint.status): {
                "description": endpoint.summary,
                "content": {endpoint.media: {"schema": endpoint.response}},
            },
            "default": _PROBLEM,
        },
    }
    if endpoint.body is not None:
        required = bool(endpoint.body.get("required"))
        operation["requestBody"] = {"required": required, "content": {"application/json": {"schema": endpoint.body}}}
    return operation


_COSTS = {"FREE": "reads only", "PAID": "may call a model", "WRITES": "changes the store or files, calls no model"}


def api_page(endpoints: Iterable[Endpoint], base: str) -> str:
    """Return the page. `base` is the path below which the server is reached."""
    listed = sorted(endpoints, key=lambda one: (one.template.split("/")[1], one.template, one.method))
    rows = "".join(
        f'<li><a href="#{escape(one.name)}"><code>{one.method} {escape(one.template)}</code></a> '
        f"{escape(one.summary)}</li>"
        for one in listed
    )
    parts = "".join(_endpoint(one, base) for one in listed)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Quire: the HTTP API</title></head><body>'
        f"<h1>The HTTP API of Quire {escape(__version__)}</h1>"
        f"<p>All paths are below <code>{escape(base)}/api/v1</code>. Every request needs the header "
        "<code>Authorization: Bearer TOKEN</code>; <code>quire serve --url</code> prints the token. Errors are "
        "problems as RFC 9457 describes them. The same as OpenAPI 3.1: <code>/openapi.json</code>.</p>"
        f"<ul>{rows}</ul>{parts}</body></html>\n"
    )


def _endpoint(one: Endpoint, base: str) -> str:
    items = [f"<dt><code>{escape(name)}</code></dt><dd>a part of the path</dd>" for name in one.path_names]
    for parameter in one.parameters:
        many = ", may be given several times" if parameter.many else ""
        items.append(f"<dt><code>?{escape(parameter.name)}=</code></dt><dd>{escape(parameter.description)}{many}</dd>")
    body = f"<p>The body:</p><pre>{escape(encode(one.body))}</pre>" if one.body is not None else ""
    return (
        f'<h2 id="{escape(one.name)}"><code>{one.method} {escape(one.template)}</code></h2>'
        f"<p>{escape(one.summary)} {one.cost}: {_COSTS[one.cost]}.</p>"
        + (f"<dl>{''.join(items)}</dl>" if items else "")
        + body
        + f"<p>Answers {one.status}.</p><pre>{escape(curl(one, base))}</pre>"
    )


def curl(one: Endpoint, base: str) -> str:
    """Return a command that sends such a request."""
    method = "" if one.method == "GET" else f" -X {one.method}"
    body = " -H 'Content-Type: application/json' -d '{}'" if one.method != "GET" else ""
    return f'curl{method} -H "Authorization: Bearer $TOKEN"{body} http://127.0.0.1:8377{base}/api/v1{one.template}'
