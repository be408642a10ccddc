"""Values of the last runs of open documents, for hovers.

Runs are read in a process of their own, one document at a time, when a document is opened or hovered. A hover shows the
values that are known by then and never waits. They are read again once the store or the agreement of the user has
changed, and after a while.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.lsp.jobs import Job
from quire.lsp.markdown import code

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.runs.last_values import LastValues
    from quire.values import Value

LONGEST_SHOWN = 300
MOST_KEPT = 200
"""Documents whose last runs are kept."""
KEPT_SECONDS = 60.0
"""Values are read again after so long: files that the user has agreed to may have changed."""
JOB_SECONDS = 10.0
"""A process that reads longer is ended."""
RUNNABLE = ("playbook", "pipeline", "directive")
_MARKS = ("quire.toml", "pyproject.toml", ".mcp.json")

Stamp: TypeAlias = tuple[tuple[int, int, int], ...]


class _Known(Struct, frozen=True):
    """The values that were read of one document."""

    stamp: Stamp
    at: float
    store: str
    """The path or the address of the store. Nothing is read from behind a network."""
    values: dict[str, LastValues]
    """By the pipeline of the file; by the empty text for other documents."""


class LastRuns:
    """The last runs of the open documents, as far as they were read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._known: dict[str, _Known] = {}
        self._wanted: dict[str, View] = {}
        self._reading = ""

    def want(self, view: View) -> None:
        """Read the last run of a document, unless that has been done and nothing has changed since."""
        if view.format not in RUNNABLE or view.path == self._reading:
            return
        known, store = self._known.get(view.path), self._store(view)
        if known is None and not os.path.exists(store) and not _names_store(view):  # noqa: PTH110  # for every hover
            return
        old = known is None or self.clock() - known.at > KEPT_SECONDS or known.stamp != _stamp(view, store)
        if old:
            self._wanted[view.path] = view

    def markdown(self, view: View, way: Sequence[str], part: str = "") -> str:
        """Return the value that the last run gave to a name, with the run and its age; empty if none is known."""
        self.want(view)
        known = self._known.get(view.path)
        last = known.values.get(part) if known is not None else None
        if last is None:
            return ""
        from quire.display.tables import age
        from quire.runs.last_values import value_at

        for value in value_at(last, way):
            old = "" if last.sha256 == view.source.sha256 else ", before the last change of the text"
            ago = f"{age(time.time() - last.at)} ago"
            return f"Last value: {code(_shown(value))}, in run {code(last.run)}, {ago}{old}."
        return ""

    @property
    def is_due(self) -> bool:
        return bool(self._wanted) and not self._reading

    def next(self) -> Job | None:
        """Return the job that reads the next document; None if none is due."""
        if not self.is_due:
            return None
        path, view = next(iter(self._wanted.items()))
        del self._wanted[path]
        self._reading = path
        now, store = self.clock(), self._store(view)
        nothing = _Known(_stamp(view, store), now, store, {})

        def take(result: bytes | None) -> None:
            self._reading = ""
            found: _Known = pickle.loads(result) if result is not None else nothing  # noqa: S301  # from our own child
            self._known.pop(path, None)
            self._known[path] = found
            while len(self._known) > MOST_KEPT:
                del self._known[next(iter(self._known))]

        return Job(lambda: pickle.dumps(_read(view, nothing)), take, lambda: self.clock() > now + JOB_SECONDS)

    def _store(self, view: View) -> str:
        from quire.stores import DEFAULT_PATH

        known = self._known.get(view.path)
        return known.store if known is not None else str(view.folder.path / DEFAULT_PATH)


def _read(view: View, nothing: _Known) -> _Known:
    """Read the last runs of a document. This is done in another process."""
    from quire.runs.last_values import last_values
    from quire.runs.stored import store_place

    try:
        settings = view.folder.settings
        if settings is None:
            return nothing
        store = str(store_place(settings))
        stamp = _stamp(view, store)
        return _Known(stamp, nothing.at, store, last_values(settings, os.environ, Path(view.path), view.format))
    except Exception:  # no value and no error: a hover is not the place to hear of a broken store
        return nothing


def _names_store(view: View) -> bool:
    """Tell whether the settings may name another place for runs, without reading them."""
    return "settings" in vars(view.folder) and bool(view.folder.settings and view.folder.settings.store_url)


def _stamp(view: View, store: str) -> Stamp:
    """Return numbers that change with the store, with the settings and with the agreement of the user."""
    from quire.workspace.locate import user_space

    folder, user, store = str(view.folder.path), str(user_space()), store.removeprefix("sqlite:///")
    marks = [f"{folder}/{name}" for name in _MARKS]
    return tuple(_status(path) for path in (store, f"{store}-wal", *marks, f"{user}/trust/workspaces.json"))


def _status(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116  # for every hover
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _shown(value: Value) -> str:
    from quire.display.visible import visible
    from quire.values import encode
    from quire.wording import cut

    text = value if isinstance(value, str) else encode(value)
    return cut(visible(" ".join(text[: 4 * LONGEST_SHOWN].split())), LONGEST_SHOWN) or "(empty)"
