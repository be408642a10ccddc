"""Endpoints of the API: the shape of one of them, the checks that every request passes, and the description of all:
OpenAPI 3.1 for programs, and a page for people that has no script and no style from elsewhere and can be read offline.

They are made from the table of operations. Routing, validation, the description and the tests are made from them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from starlette.responses import Response

from quire import __version__
from quire.operations import JSON, Cost
from quire.operations.field_types import Schema, errors_of
from quire.operations.problems import Problem
from quire.values import InvalidValue, Value, decode, encode
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from starlette.requests import Request

    from quire.server.site import Site


MAX_BODY = 10_000_000
PROBLEM = "application/problem+json"
_WITHOUT_BODY = (204, 304)

_TEMPLATE = re.compile(r"\{(\w+)(:path)?\}")


class Parameter(Struct, frozen=True):
    """A parameter of the query. A `many` parameter may be given several times."""

    name: str
    schema: Schema
    description: str
    many: bool = False

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Value]) -> Parameter:
        """Return a parameter from the schema of its field."""
        plain = {key: value for key, value in schema.items() if key != "description"}
        many = plain.get("type") == "array"
        return cls(name, plain["items"] if many else plain, str(schema.get("description", "")), many)  # type: ignore[arg-type]

    @property
    def whole(self) -> Schema:
        """The schema of all its values."""
        return {"type": "array", "items": self.schema} if self.many else self.schema


class Call(Struct, frozen=True):
    """A request that has passed all checks of its endpoint."""

    path: Mapping[str, str]
    query: Mapping[str, Value]
    body: Mapping[str, Value]
    request: Request


class Reply(Struct, frozen=True):
    """The JSON that a handler returns, with its status and headers."""

    data: Value = None
    status: int = 200
    headers: Mapping[str, str] = {}


KEY_HEADER = "idempotency-key"

Handler: TypeAlias = "Callable[[Site, Call], Awaitable[Reply | Response]]"


class Endpoint(Struct, frozen=True, dict=True):
    """One entry of the route table."""

    method: str
    path: str
    """The path below `/api/v1`; `{name:path}` may contain slashes."""
    name: str
    summary: str
    cost: Cost
    handler: Handler
    parameters: Sequence[Parameter] = ()
    body: Schema | None = None
    status: int = 200
    response: Schema = {}
    """The schema of the JSON that a successful request returns."""
    media: str = JSON
    """The media type of the response."""

    @property
    def template(self) -> str:
        """Return the path as OpenAPI writes it."""
        return _TEMPLATE.sub(r"{\1}", self.path)

    @property
    def path_names(self) -> tuple[str, ...]:
        return names_in(self.path)

    @cached_property
    def query_schema(self) -> Schema:
        return {"type": "object", "properties": {parameter.name: parameter.whole for parameter in self.parameters}}

    async def call_of(self, request: Request) -> Call:
        """Read and check a request. Raises `Problem` with everything that is wrong with it."""
        query = self._query(request)
        body = await self._body(request)
        return Call(dict(request.path_params), query, body, request)

    def _query(self, request: Request) -> dict[str, Value]:
        parameters = {parameter.name: parameter for parameter in self.parameters}
        query: dict[str, Value] = {}
        for name in dict.fromkeys(request.query_params.keys()):
            if name not in parameters:
                close = nearest(name, list(parameters))
                raise Problem(
                    422,
                    "unknown-parameter",
                    f"{self.name} has no parameter {name!r}",
                    help=did_you_mean(close) or f"it takes {', '.join(parameters) or 'no parameters'}",
                )
            values = [_read(text, parameters[name].schema) for text in request.query_params.getlist(name)]
            query[name] = values if parameters[name].many else values[-1]
        _validate("unfit-parameters", self.query_schema, query, "the query")
        return query

    async def _body(self, request: Request) -> Mapping[str, Value]:
        if self.body is None:
            return {}
        raw = await request.body()
        try:
            value = decode(raw.decode()) if raw.strip() else {}
        except (InvalidValue, UnicodeDecodeError) as error:
            raise Problem(400, "not-json", f"the body is not JSON: {error}") from None
        _validate("unfit-body", self.body, value, "the body")
        return value if isinstance(value, Mapping) else {}


def names_in(path: str) -> tuple[str, ...]:
    """Return the names of the parts of a path that vary."""
    return tuple(match[1] for match in _TEMPLATE.finditer(path))


def _read(text: str, schema: Schema) -> Value:
    """Return a text of the query as the value that its schema wants; unchanged if it is not one."""
    match schema.get("type"):
        case "integer" if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            return int(text)
        case "number":
            try:
                return float(text)
            except ValueError:
                return text
        case "boolean" if text in ("1", "true", "0", "false"):
            return text in ("1", "true")
    return text


def _validate(code: str, schema: Schema, value: Value, what: str) -> None:
    problems = [{"pointer": pointer, "message": message} for pointer, message in errors_of(schema, value)]
    if problems:
        first = problems[0]
        place = f" at {first['pointer']}" if first["pointer"] else ""
        raise Problem(422, code, f"{what} does not fit{place}: {first['message']}", more={"fields": problems})


def json_response(reply: Reply) -> Response:
    if reply.status in _WITHOUT_BODY:
        return Response(None, reply.status, dict(reply.headers))
    return Response(encode(reply.data), reply.status, dict(reply.headers), JSON)


def problem_response(problem: Problem, base: str = "", instance: str = "") -> Response:
    return Response(encode(problem.data(base, instance)), problem.status, dict(problem.headers), PROBLEM)


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
    parameters += [
        {"name": parameter.name, "in": "query", "description": parameter.description, "schema": parameter.whole}
        for parameter in endpoint.parameters
    ]
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
    listed = sorted(
        endpoints, key=lambda endpoint: (endpoint.template.split("/")[1], endpoint.template, endpoint.method)
    )
    rows = "".join(
        f'<li><a href="#{escape(endpoint.name)}"><code>{endpoint.method} {escape(endpoint.template)}</code></a> '
        f"{escape(endpoint.summary)}</li>"
        for endpoint in listed
    )
    parts = "".join(_endpoint(endpoint, base) for endpoint in listed)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Quire: the HTTP API</title></head><body>'
        f"<h1>The HTTP API of Quire {escape(__version__)}</h1>"
        f"<p>All paths are below <code>{escape(base)}/api/v1</code>. Every request needs the header "
        "<code>Authorization: Bearer TOKEN</code>; <code>quire serve --url</code> prints the token. Errors are "
        "problems as RFC 9457 describes them. The same as OpenAPI 3.1: <code>/openapi.json</code>.</p>"
        f"<ul>{rows}</ul>{parts}</body></html>\n"
    )


def _endpoint(endpoint: Endpoint, base: str) -> str:
    items = [f"<dt><code>{escape(name)}</code></dt><dd>a part of the path</dd>" for name in endpoint.path_names]
    for parameter in endpoint.parameters:
        many = ", may be given several times" if parameter.many else ""
        items.append(f"<dt><code>?{escape(parameter.name)}=</code></dt><dd>{escape(parameter.description)}{many}</dd>")
    body = f"<p>The body:</p><pre>{escape(encode(endpoint.body))}</pre>" if endpoint.body is not None else ""
    return (
        f'<h2 id="{escape(endpoint.name)}"><code>{endpoint.method} {escape(endpoint.template)}</code></h2>'
        f"<p>{escape(endpoint.summary)} {endpoint.cost}: {_COSTS[endpoint.cost]}.</p>"
        + (f"<dl>{''.join(items)}</dl>" if items else "")
        + body
        + f"<p>Answers {endpoint.status}.</p><pre>{escape(curl(endpoint, base))}</pre>"
    )


def curl(endpoint: Endpoint, base: str) -> str:
    """Return a command that sends such a request."""
    is_read = endpoint.method == "GET"
    method = "" if is_read else f" -X {endpoint.method}"
    body = "" if is_read else " -H 'Content-Type: application/json' -d '{}'"
    place = f"http://127.0.0.1:8377{base}/api/v1{endpoint.template}"
    return f'curl{method} -H "Authorization: Bearer $TOKEN"{body} {place}'
