"""Directive cases of the kit that run nothing: reading directives and knowledge files, and validation for signing."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.directive.parse import parse
from quire.formats.directive.validate import issues
from quire.formats.directive.write import fields
from quire.source import Source


def parse_directive(given: dict[str, Any]) -> dict[str, Any]:
    reading = parse(Source.of(given["text"], given.get("name", "directive.md")))
    return _result(fields(reading), reading.of(Severity.ERROR))


def parse_knowledge(given: dict[str, Any]) -> dict[str, Any]:
    knowledge = read_knowledge(Source.of(given["text"], given.get("name", "knowledge.md")))
    return _result({**knowledge.metadata, "body": knowledge.body}, knowledge.errors)


def validate_directive(given: dict[str, Any]) -> dict[str, Any]:
    found = issues(Source.of(given["text"], given["path"]), PurePath(given["path"]))
    return {"valid": not found, "issues": found}


def _result(fields: dict[str, Any], errors: tuple[Diagnostic, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {"fields": fields}
    if errors:
        result["error"] = "\n".join(f"{found.message} {found.help}".strip() for found in errors)
    return result
