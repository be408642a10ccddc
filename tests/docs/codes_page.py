"""Writes `docs/reference/codes.md` and a page for each prefix of codes below `docs/reference/codes/`, from the codes in
the program.

python -m tests.docs.codes_page
"""

from __future__ import annotations

from tests.docs.pages import ROOT

from quire.diagnostics import Code, Severity
from quire.library.check import all_codes

FOLDER = "docs/reference"

PREFIXES = {
    "PB": "Playbooks",
    "PL": "Pipelines",
    "DR": "Directives",
    "KN": "Knowledge files",
    "TS": "Test files and test runs",
    "LK": "The lock",
    "CF": "Settings",
    "YM": "YAML",
    "EX": "Expressions",
    "TY": "Types of values",
    "TX": "Texts of every format",
    "AL": "Comments that allow a finding",
    "BD": "Bounds: what a run uses at most",
    "GA": "Approvals before effects",
    "TA": "Text from outside",
    "SE": "Secrets and private data",
    "EV": "Permissions that a document needs",
    "DD": "Dead parts of a document",
    "RC": "Writes side by side",
}

MEANING = {
    Severity.ERROR: "Errors stop a document from running, or a check from passing.",
    Severity.WARNING: "Warnings: the document runs, but not as it seems to be meant, or not safely.",
    Severity.LINT: "Lints are advice that `quire check` adds.",
    Severity.NOTE: "Notes say how something unusual was read. They never make a check fail.",
}

INTRODUCTION = """\
# Codes

Every finding of `quire check` has a code that never changes its meaning. `quire check --explain PB106` and
`quire docs PB106` print the entry of a code. `--strict` makes warnings and lints count like errors.

`quire check --fix` applies fixes that have only one solution, and prints each change: words and names with one wrong
letter that are close to a single known one (PB103, PB104, PB105, PB106, PB108, PB201, PB206, PB214, PB229, PL005,
PL009, PL011, PL017, PL043, PL044, PL102, PL109, PL113, PL140, DR021, DR101, DR105, DR107, DR108, TS001, TS002, TY105,
EX001), headings of steps (PB004, PB119), branch markers (PB107, PB110) and space in braces (PB212, PL202). It never
changes permissions or the names of tools and documents. `--json` lists the edits under `fix`. Other fixes need
`--unsafe` too; see [checking](../guides/checking.md)."""


def codes_pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    groups: dict[str, list[Code]] = {prefix: [] for prefix in PREFIXES}
    for code in all_codes():
        groups[code.id.rstrip("0123456789")].append(code)
    rows = [f"| [{prefix}](codes/{prefix}.md) | {PREFIXES[prefix]} | {_counts(groups[prefix])} |" for prefix in groups]
    index = "\n".join([INTRODUCTION, "", "| prefix | about | codes |", "| --- | --- | --- |", *rows, ""])
    pages = {f"{FOLDER}/codes/{prefix}.md": _page(prefix, codes) for prefix, codes in groups.items()}
    return {f"{FOLDER}/codes.md": index, **pages}


def _page(prefix: str, codes: list[Code]) -> str:
    parts = [f"# {prefix}: {PREFIXES[prefix]}", "One of the [pages about codes](../codes.md)."]
    for severity in Severity:
        chosen = [code for code in codes if code.severity is severity]
        if chosen:
            parts += [f"## {severity.value.capitalize()}s", MEANING[severity]]
            parts += [f"### {code.id} {code.name}\n\n{code.explanation}" for code in chosen]
    return "\n\n".join(parts) + "\n"


def _counts(codes: list[Code]) -> str:
    by_severity = [(severity.value, sum(code.severity is severity for code in codes)) for severity in Severity]
    return ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in by_severity if count)


if __name__ == "__main__":
    for old in (ROOT / FOLDER / "codes").glob("*.md"):
        old.unlink()
    (ROOT / FOLDER / "codes").mkdir(exist_ok=True)
    for path, text in codes_pages().items():
        (ROOT / path).write_text(text, encoding="utf-8")
