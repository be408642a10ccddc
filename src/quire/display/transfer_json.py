"""JSON of what happens to whole runs: removed, imported, verified. All keys of `--json` are defined here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.runs.imports import Exported
    from quire.runs.verify import Verdict
    from quire.stores.contract import Pruned
    from quire.values import Value


def pruned_data(pruned: Pruned, *, dry_run: bool) -> dict[str, Value]:
    return {
        "runs": list(pruned.runs),
        "effects": pruned.effects,
        "texts": pruned.texts,
        "bytes": pruned.size,
        "given_back": pruned.given_back,
        "dry_run": dry_run,
    }


def imported_data(exported: Exported) -> dict[str, Value]:
    return {"run": exported.row.id, "effects": len(exported.effects), "head": exported.head}


def verdict_data(verdict: Verdict, file: str = "") -> dict[str, Value]:
    """Return a verdict about a stored run, or about a `file`."""
    found: dict[str, Value] = {"file": file, "ok": verdict.ok} if file else {"run": verdict.run, "ok": verdict.ok}
    if verdict.exported is not None:
        exported = verdict.exported
        found |= {"run": verdict.run, "lines": exported.lines, "head": exported.head}
    if not verdict.ok:
        found["problem"] = verdict.problem
        if file:
            found["line"] = verdict.line or None
    elif not file:
        found["effects"] = verdict.effects
    return found
