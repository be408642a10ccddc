"""Taking in a run from a file: proved by a replay first, then kept to be looked at and forked, never to be driven."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from quire.engine.records import NewRun, RunRow, RunUpdate
from quire.errors import CannotStart, JournalMismatch, QuireError
from quire.runtime.export import result_of
from quire.runtime.exported import Exported, as_imported
from quire.runtime.runtime import Runtime
from quire.store import open_store
from quire.store.keeping import History, restore
from quire.values import Value, fingerprint
from quire.workspace.settings import Settings


class NotProved(CannotStart):
    """The file is as it was written, but its document with its records does not give the result that it states."""


async def prove(exported: Exported, settings: Settings) -> None:
    """Replays the pinned document with the records of the file, in a store of its own. Raises `NotProved`."""
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        runtime = Runtime(settings, open_store(Path(folder) / "proof.db", durability="process"))
        try:
            await _keep(runtime, exported, exported.row)
            view = await runtime.view_of(exported.row, exported.effects, exported.questions)
            given: dict[str, Value] = result_of(view)
        except JournalMismatch as error:
            raise NotProved(f"the journal does not belong to the document: {error}") from None
        except QuireError as error:
            raise NotProved(f"the document of the run cannot be walked: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            # What the run pinned is of any shape in a file from elsewhere.
            raise NotProved(f"what the run holds on to cannot be read: {type(error).__name__}: {error}") from None
        finally:
            await runtime.close()
    for name in dict.fromkeys((*exported.result, *given)):
        stated, found = exported.result.get(name), given.get(name)
        if fingerprint(stated) != fingerprint(found):
            raise NotProved(f"the replay gives another {name} than the file states")


async def import_run(runtime: Runtime, exported: Exported) -> str:
    """Raises `CannotStart`, and `StoreError` where the run is here already."""
    await prove(exported, runtime.settings)
    await _keep(runtime, exported, as_imported(exported.row))
    return exported.row.id


async def _keep(runtime: Runtime, exported: Exported, row: RunRow) -> None:
    made = NewRun(row.id, row.title, row.format, row.document, row.created_at, row.pins, exported.texts)
    update = RunUpdate(row.status, row.position, row.failure, row.ended_by, row.expires_at)
    history = History(
        update,
        exported.effects,
        [replace(event) for event in exported.events],
        row.updated_at,
        row.input_tokens,
        row.output_tokens,
        row.cost,
    )
    await restore(runtime.store, made, history)
