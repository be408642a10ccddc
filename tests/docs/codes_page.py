"""Prints `docs/reference/codes.md`: every code with its page, so that the docs cannot drift from the code.

python -m tests.docs.codes_page > docs/reference/codes.md
"""

from __future__ import annotations

from quire.diagnostics import Code, Severity
from quire.library.check import all_codes

_MEANING = {
    Severity.ERROR: "Errors stop a document from running, or a check from passing.",
    Severity.WARNING: "Warnings: the document runs, but not all of it as it seems to be meant, or not safely.",
    Severity.LINT: "Lints are advice that `quire check` adds.",
    Severity.NOTE: "Notes say what the reader did with something unusual. They never make a check fail.",
}


def codes_page() -> str:
    codes = all_codes()
    parts = [
        "# Codes",
        "Every finding of `quire check` has a code that never changes its meaning. `quire check --explain PB106`\n"
        "prints a page of this list. `--strict` makes warnings and lints count like errors.",
        "`quire check --fix` mends findings that can be mended in one way only, and says what it changed: words and\n"
        "names with one wrong letter where a single known one is near (PB103, PB104, PB105, PB106, PB108, PB201,\n"
        "PB206, PB214, PB229, PL005, PL009, PL011, PL017, PL043, PL044, PL102, PL109, PL113, PL140, DR021, DR101,\n"
        "DR105, DR107, DR108, TS001, TS002, TY105, EX001), headings of steps (PB004, PB119), branch markers (PB107,\n"
        "PB110) and space in braces (PB212, PL202). It never touches permissions or the names of tools and documents.\n"
        "`--json` lists the edits under `fix`. Other fixes need `--unsafe` too; see [checking](../guides/checking.md).",
    ]
    for severity in Severity:
        chosen = [code for code in codes if code.severity is severity]
        if chosen:
            parts += [f"## {severity.value.capitalize()}s", _MEANING[severity]]
            parts += [_entry(code) for code in chosen]
    return "\n\n".join(parts) + "\n"


def _entry(code: Code) -> str:
    return f"### {code.id} {code.name}\n\n{code.explanation}"


if __name__ == "__main__":
    print(codes_page(), end="")
