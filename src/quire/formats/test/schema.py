"""The published JSON Schema of test files."""

from __future__ import annotations

from importlib.resources import files


def schema_text() -> str:
    """Return the schema (draft 2020-12), as `quire test --schema` prints it."""
    return files("quire.formats.test").joinpath("schema.json").read_text(encoding="utf-8")
