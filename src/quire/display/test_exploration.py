"""Say how often each document was explored, and how its runs ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.display.visible import visible
from quire.values import encode

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.exploration.explore import DocumentExploration


def exploration_text(documents: Sequence[DocumentExploration], form: FormatName) -> str:
    """Return a line for each document, in the words of the format."""
    lines = []
    for one in documents:
        found = one.exploration
        if form == "json":
            lines.append(
                encode(
                    {
                        "type": "exploration",
                        "document": one.document,
                        "seed": one.seed,
                        "runs": found.runs,
                        "ends": dict(found.ends),
                        "broken": [each.broken.promise for each in found.found],
                        "skipped": found.skipped or None,
                    }
                )
            )
        elif form in ("full", "concise"):
            lines.append(_line(one))
    return "".join(f"{line}\n" for line in lines)


def _line(one: DocumentExploration) -> str:
    found, name = one.exploration, visible(one.document)
    if found.skipped:
        return f"{name}: not explored: {found.skipped}"
    ends = ", ".join(f"{count:,} {status}" for status, count in sorted(found.ends.items(), key=lambda end: -end[1]))
    refused = found.runs - sum(found.ends.values())
    ends += f", {refused:,} with inputs that are refused" if refused else ""
    broken = f"; {len(found.found)} promises broken" if found.found else "; no promise broken"
    return f"{name}: {found.runs:,} runs explored from seed {one.seed} ({ends}){broken}"
