"""The shape of an explanation page: what, why, and the wrong beside the right."""

from __future__ import annotations

from quire.diagnostics import Code, Severity


def make(severity: Severity, id: str, name: str, what: str, why: str, wrong: str, right: str) -> Code:
    page = f"{what}\n\n{why}\n\nWrong:\n\n{_indented(wrong)}\n\nRight:\n\n{_indented(right)}"
    return Code(id, name, severity, page)


def _indented(example: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in example.split("\n"))
