"""The OpenAPI 3.1 description of the API, made from the route table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quire import __version__
from quire.server.problems import MEDIA_TYPE as PROBLEM

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
