"""Say which snapshots of a test file were written, changed or removed, and how they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.visible import visible
from quire.display.why import word_diff
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.testing.results import FileResult


def snapshot_lines(result: FileResult, *, colour: bool) -> Iterator[str]:
    """Yield lines for standard error: the number of new snapshots, and each change with its difference."""
    new = sum(change.before is None for change in result.snapshots)
    if new:
        yield f"{visible(result.path)}: {new} new {pluralize('snapshot', new)} written"
    for change in result.snapshots:
        if change.before is None:
            continue
        verb = "removed" if change.after is None else "changed"
        yield f"{visible(result.path)}: {visible(change.place)} of {visible(change.case)} {verb}"
        if change.after is not None:
            yield from (f"  {line}" for line in word_diff(change.before, change.after, colour=colour))
