"""The values that the last run of a document gave to its inputs and results, for editors.

They come from a replay of the journal, as everything that is shown of a run. A store is read only if it is a file, and
without a trace. A workspace that its user has not agreed to, a store that cannot be read, and a run that does not carry
the seal of this user have no values: a journal that came with a repository says nothing about this user's runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import BrokenSeal, QuireError
from quire.runs.runtime import Runtime
from quire.runs.stored import store_place
from quire.runs.workspace_gate import redactor_of
from quire.stores import is_server, open_store
from quire.stores.run_pages import RunFilters
from quire.trust.seal import is_in_keyring, user_seal
from quire.trust.secrets import looks_secret
from quire.values import encode, text_or_json
from quire.wording import cut
from quire.workspace.consent import is_trusted
from quire.workspace.secrets import masked

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.outcome import RunView
    from quire.trust.secrets import Redactor
    from quire.values import Value
    from quire.workspace.settings import Settings

HIDDEN = "[hidden: its name sounds like a secret]"
MOST_ROWS = 50
"""Runs among which the last ones of the document are looked for."""
MOST_PARTS = 10
"""Pipelines of one file whose last runs are read."""
MOST_EFFECTS = 2_000
"""A longer journal is not replayed."""
LONGEST_VALUE = 10_000
LONGEST_TOGETHER = 200_000
_SECONDS = 1.0


class LastValues(Struct, frozen=True):
    """The values of one run. Secrets are removed and long values cut."""

    run: str
    at: float
    """When the run last continued, in seconds since 1970."""
    sha256: str
    """Of the text of the document that was run."""
    groups: Mapping[str, Mapping[str, Value]]
    """By name in `inputs` and `outputs`, for a pipeline in `stores`."""


def last_values(settings: Settings, environ: Mapping[str, str], file: Path, format: str) -> dict[str, LastValues]:
    """Return the values of the last run of a document; for a file of several pipelines by the name of each. Never
    raises `QuireError` or `OSError`: without a readable run there are no values."""
    place = store_place(settings)
    try:
        if is_server(place) or not is_trusted(settings) or is_in_keyring(settings.user, environ):
            return {}
        seal = user_seal(settings.user, environ)
        if not seal.exists():
            return {}
        store = open_store(place, seal=seal, busy_timeout=_SECONDS, read_only=True)
        return asyncio.run(_read(Runtime(settings, store, environ=environ), file, format))
    except (QuireError, OSError):
        return {}


async def _read(runtime: Runtime, file: Path, format: str) -> dict[str, LastValues]:
    redactor = redactor_of(runtime.settings, runtime.environ)
    values: dict[str, LastValues] = {}
    try:
        page = await runtime.store.page(RunFilters(document=file.name, format=format), limit=MOST_ROWS)
        for row in page.rows:
            part = str(row.pins.get("declared", ""))
            if not _is_of(row, file) or part in values or len(values) >= MOST_PARTS:
                continue
            with suppress(BrokenSeal):
                await runtime.store.check_seal(row.id)
                if len(await runtime.store.effects(row.id)) <= MOST_EFFECTS:
                    values[part] = _values(await runtime.view(row.id), redactor)
    finally:
        await runtime.close()
    return values


def _is_of(row: RunRow, file: Path) -> bool:
    folder = row.pins.get("folder")
    if not isinstance(folder, str) or row.pins.get("imported") or Path(row.document).name != file.name:
        return False
    return Path(folder).resolve() == file.parent.resolve()


def _values(view: RunView, redactor: Redactor) -> LastValues:
    if view.row.format == "pipeline":
        groups: dict[str, Value] = {"stores": dict(view.stores)}
    elif view.thread is not None:
        groups = {"inputs": dict(view.pins.inputs), "outputs": view.ending.get("outputs", {})}
    else:
        state = view.state()
        groups = {"inputs": state["input_values"], "outputs": state["named_outputs"]}
    left = LONGEST_TOGETHER
    shortened: dict[str, dict[str, Value]] = {}
    for group, values in groups.items():
        shortened[group] = {}
        for name, value in values.items() if isinstance(values, Mapping) else ():
            shown = _without_secrets(name, redactor.value(value))
            if len(text := text_or_json(shown)) > LONGEST_VALUE:
                shown = cut(text, LONGEST_VALUE)
            left -= len(encode(shown))
            if left >= 0:
                shortened[group][name] = shown
    return LastValues(view.row.id, view.row.updated_at, view.pins.document, shortened)


def _without_secrets(name: str, value: Value) -> Value:
    """Hide values whose name sounds like a secret, and words in texts that look like keys."""
    if looks_secret(name):
        return HIDDEN
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: _without_secrets(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets("", item) for item in value]
    return value


def value_at(values: LastValues, way: Sequence[str]) -> Iterator[Value]:
    """Yield the value at a group, a name and the fields that follow; nothing if the run did not give it one."""
    value: Value = {group: dict(by_name) for group, by_name in values.groups.items()}
    for name in way:
        if not isinstance(value, Mapping) or name not in value:
            return
        value = value[name]
    yield value
