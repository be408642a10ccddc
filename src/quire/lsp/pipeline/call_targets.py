"""The names that a call of a pipeline may have: those of documents that the check accepts at this place.

A name is the one of a pipeline, `KEY.NAME`, or the last part of the name of a playbook or a directive in a folder. A
document that calls this pipeline, at any depth, is not offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.pipeline.syntax import is_name
from quire.formats.pipeline.walks import targets, walk
from quire.lsp.pipeline.tree import outer_of, steps_at
from quire.source import real_path

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot
    from quire.lsp.views import View

_MOST_READ = 100
"""Playbooks are not read for the calls in them if there are more documents than these: after each letter it would take
too long."""
_OWN = "\0"
"""Stands before the name of a pipeline of this file, which may not be registered."""


def target_names(view: View, offset: int) -> list[tuple[str, str, str]]:
    """Return the names that a call may have at an offset, each with its format and its description."""
    found: dict[str, tuple[str, str, str]] = {}
    for one in outer_of(view).pipelines:
        found[one.name.text] = (one.name.text, "pipeline", one.description)
    snapshot = view.folder.snapshot
    if snapshot is not None:
        for name, format, about in _named(snapshot):
            found.setdefault(name, (name, format, about))
    named = [one for one in found.values() if _can_be_written(one[0])]
    circles = _Circles(view, offset, reads=len(named) <= _MOST_READ)
    return [one for one in named if not circles.is_closed_by(one[0])]


def _named(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    try:
        for name, registered in snapshot.registry().pipelines.items():
            yield name, "pipeline", registered.description
        playbooks = snapshot.playbooks().paths
        for name in (*playbooks, *_last_parts(playbooks)):
            yield name, "playbook", ""
        directives = snapshot.ids("directive")
        for name in (*directives, *_last_parts(directives)):
            yield name, "directive", ""
    except QuireError:
        return


def _last_parts(names: Iterable[str]) -> Iterator[str]:
    """Yield the last parts of names that only one of them has: these are enough to find it."""
    found: dict[str, int] = {}
    for name in names:
        last = name.rpartition("/")[2]
        found[last] = found.get(last, 0) + 1
    return (last for last, count in found.items() if count == 1)


def _can_be_written(name: str) -> bool:
    """Tell whether a call can have a name: the reader takes no other."""
    parts = name.split(".")
    return len(parts) <= 2 and all(map(is_name, parts))


class _Circles:
    """The calls between documents, as far as they may lead back to the pipeline at the cursor."""

    def __init__(self, view: View, offset: int, *, reads: bool) -> None:
        """`reads` tells whether the calls of playbooks count, too."""
        self._snapshot = view.folder.snapshot
        self._reads = reads
        around = steps_at(view, offset)
        self._here = around.pipeline.name.text if around is not None else ""
        self._own: dict[str, tuple[str, ...]] = {}
        pipelines = outer_of(view).pipelines
        for one in pipelines:
            called = (target.pipeline.text for _, step in walk(one) for target in targets(step))
            self._own[one.name.text] = tuple(dict.fromkeys(called))
        keys = _keys(view) if len(pipelines) > 1 else ()
        self._names = {f"{key}.{name}": name for key in keys for name in self._own}
        if not keys:
            self._names = {name: name for name in self._own}
        self._open: set[str] = set()
        """Documents that are known not to lead back."""

    def is_closed_by(self, name: str) -> bool:
        """Tell whether a call with a name would close a circle."""
        start = f"{_OWN}{name}" if name in self._own else self._node(name)
        seen, left = {start}, [start]
        while left:
            one = left.pop()
            if one == f"{_OWN}{self._here}":
                return True
            for called in self._calls(one):
                if called not in seen and called not in self._open:
                    seen.add(called)
                    left.append(called)
        self._open |= seen
        return False

    def _node(self, name: str) -> str:
        return f"{_OWN}{self._names[name]}" if name in self._names else name

    def _calls(self, one: str) -> Iterator[str]:
        if one.startswith(_OWN):
            for name in self._own.get(one.removeprefix(_OWN), ()):
                yield f"{_OWN}{name}" if name in self._own else self._node(name)
            return
        from quire.library.callees import called_names

        try:
            registered = self._snapshot.registry().pipelines.get(one) if self._snapshot is not None else None
            plan = registered.plan if registered is not None else None
            if plan is None and self._reads and self._snapshot is not None:
                document = self._snapshot.find(one, ("playbook",))
                plan = document.plan if document is not None else None
        except QuireError:
            return
        yield from map(self._node, called_names(plan) if plan is not None else ())


def _keys(view: View) -> tuple[str, ...]:
    """Return the names under which a file of several pipelines is registered."""
    from quire.library.registered import PIPELINES_FOLDER

    settings, path = view.folder.settings, real_path(Path(view.path))
    if settings is None:
        return ()
    folder = settings.workspace.folder
    below = real_path(folder / PIPELINES_FOLDER)
    found = [key for key, entry in settings.pipelines.items() if real_path(folder / entry.path) == path]
    if path.is_relative_to(below):
        found.append(path.relative_to(below).with_suffix("").as_posix())
    return tuple(found)
