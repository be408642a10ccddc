"""Verify a stored run or an exported one: seals, hashes, and a replay that gives the stated result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import BrokenSeal, JournalMismatch, StoreError
from quire.runs.imports import BadExport, Exported, NotProved, prove

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.workspace.settings import Settings


class Verdict(Struct, frozen=True):
    """The result of a verification. `run` is empty for a file that is not an export."""

    run: str
    problem: str = ""
    """The reason why the run is not as it was written; empty if it is."""
    effects: int = 0
    line: int = 0
    """The line of a file that is wrong; 0 if no line is."""
    exported: Exported | None = None

    @property
    def ok(self) -> bool:
        return not self.problem


async def verify_run(runtime: Runtime, run: str) -> Verdict:
    """Check the seals of a stored run, and replay it."""
    try:
        await runtime.store.check_seal(run)
        view = await runtime.view(run)
    except (BrokenSeal, JournalMismatch, StoreError) as error:
        return Verdict(run, f"run {run}: {error.reason if isinstance(error, BrokenSeal) else error}")
    return Verdict(run, effects=len(view.effects))


async def verify_export(read: Callable[[], Exported], name: str, settings: Settings) -> Verdict:
    """Check an exported run: every line's hash, and that a replay gives the result that the file states. `name` is the
    name of the file."""
    try:
        exported = read()
    except BadExport as error:
        return Verdict("", str(error), line=error.line)
    run, effects = exported.row.id, len(exported.effects)
    try:
        await prove(exported, settings)
    except NotProved as error:
        return Verdict(run, f"{name}: {error}", effects, exported=exported)
    return Verdict(run, effects=effects, exported=exported)
