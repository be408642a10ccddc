"""What a model should not have to count."""

from __future__ import annotations

from typing import TypedDict

import quire


class Statistics(TypedDict):
    files: int
    added: int
    removed: int
    large: bool


@quire.tool(effect="read")
def diff_statistics(diff: str, large_from: int = 200) -> Statistics:
    """Counts the files and lines of a unified diff."""
    files = added = removed = 0
    for line in diff.splitlines():
        if line.startswith("+++ "):
            files += 1
        elif line.startswith("+"):
            added += 1
        elif line.startswith("-") and not line.startswith("--- "):
            removed += 1
    return {"files": files, "added": added, "removed": removed, "large": added + removed >= large_from}
