"""Letters: the message that a launcher gets when a run that it did not wait for ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.driver.drive import DriveResult
    from quire.engine.records import RunRow


def letter_text(row: RunRow, ended: DriveResult) -> str:
    """Return the `[pipeline]` message: the run, its end, and its output as JSON or its error."""
    head = f"[pipeline] run {row.id} (pipeline '{row.title}') finished: status="
    if ended.failure is not None:
        return f"{head}error\nError: {ended.failure.message}"
    output = ended.result.get("output") if isinstance(ended.result, Mapping) else ended.result
    return f"{head}ok\nOutput:\n{encode(output)}"
