"""What a launcher is told of a run that ended without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.driver.drive import Ended
    from quire.engine.records import RunRow


def letter_text(row: RunRow, ended: Ended) -> str:
    """The `[pipeline]` message: which run, how it ended, and its output as JSON or what went wrong."""
    head = f"[pipeline] run {row.id} (pipeline '{row.title}') finished: status="
    if ended.failure is not None:
        return f"{head}error\nError: {ended.failure.message}"
    output = ended.result.get("output") if isinstance(ended.result, Mapping) else ended.result
    return f"{head}ok\nOutput:\n{encode(output)}"
