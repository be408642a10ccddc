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
from quire.lsp.call_circles import MOST_READ, CallCircles
from quire.lsp.pipeline.tree import file_of, pipeline_at
from quire.source import real_path

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot
    from quire.lsp.views import View


def target_names(view: View, offset: int) -> list[tuple[str, str, str]]:
    """Return the names that a call may have at an offset, each with its format and its description."""
    found: dict[str, tuple[str, str, str]] = {}
    for one in file_of(view).pipelines:
        found[one.name.text] = (one.name.text, "pipeline", one.description)
    snapshot = view.folder.snapshot
    if snapshot is not None:
        for name, format, about in _named(snapshot):
            found.setdefault(name, (name, format, about))
    named = [one for one in found.values() if _can_be_written(one[0])]
    circles = _circles(view, offset, reads=len(named) <= MOST_READ)
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


def _circles(view: View, offset: int, *, reads: bool) -> CallCircles:
    """Return the calls that may lead back to the pipeline around an offset."""
    around = pipeline_at(view, offset)
    here = around.name.text if around is not None else ""
    own: dict[str, tuple[str, ...]] = {}
    pipelines = file_of(view).pipelines
    for one in pipelines:
        called = (target.pipeline.text for _, step in walk(one) for target in targets(step))
        own[one.name.text] = tuple(dict.fromkeys(called))
    if len(pipelines) > 1:
        names = {f"{key}.{name}": name for key in _keys(view) for name in own}
    else:
        names = {name: name for name in own}
    return CallCircles(view.folder.snapshot, here, own, names, reads=reads)


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
