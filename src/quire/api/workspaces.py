"""A workspace that a program holds open, with its store, while it starts runs and looks at them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quire.runs.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quire.engine.ports import Model


@asynccontextmanager
async def open_workspace(path: str | Path | None = None, *, model: Model | None = None) -> AsyncIterator[Runtime]:
    """Open the workspace around `path` (the current folder) and close it at the end.

    All `quire.run`s of the same workspace and event loop use its store meanwhile: one connection, whose commits are
    grouped. `model` answers in place of the configured one."""
    runtime = Runtime.open(Path(path) if path is not None else None, model=model, shared=True)
    try:
        yield runtime
    finally:
        await runtime.close()
