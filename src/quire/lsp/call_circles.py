"""Find out which calls would lead a document back to itself, so that completion does not offer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot

MOST_READ = 100
"""Playbooks are not read for the calls in them if there are more documents than these: after each letter it would take
too long."""
_OWN = "\0"
"""Stands before the name of a document of the open file, which may not be registered."""


class CallCircles:
    """The calls between playbooks and pipelines, as far as they may lead back to an open document. Calls of a directive
    are decided by a model, so they close no circle."""

    def __init__(
        self,
        snapshot: Snapshot | None,
        here: str,
        own: Mapping[str, tuple[str, ...]],
        names: Mapping[str, str],
        *,
        reads: bool,
    ) -> None:
        """`here` is the document of the file that calls, `own` has all documents of the file with their calls, `names`
        the names by which others call them. `reads` tells whether the calls of playbooks count, too."""
        self._snapshot = snapshot
        self._here = f"{_OWN}{here}"
        self._own = own
        self._names = names
        self._reads = reads
        self._open: set[str] = set()
        """Documents that are known not to lead back."""

    def is_closed_by(self, name: str) -> bool:
        """Tell whether a call with a name would close a circle."""
        start = self._node(name, inside=True)
        seen, left = {start}, [start]
        while left:
            one = left.pop()
            if one == self._here:
                return True
            for called in self._calls(one):
                if called not in seen and called not in self._open:
                    seen.add(called)
                    left.append(called)
        self._open |= seen
        return False

    def _node(self, name: str, *, inside: bool = False) -> str:
        """Return the document that a name means; `inside` is a call in the open file."""
        if inside and name in self._own:
            return f"{_OWN}{name}"
        return f"{_OWN}{self._names[name]}" if name in self._names else name

    def _calls(self, one: str) -> Iterator[str]:
        if one.startswith(_OWN):
            yield from (self._node(name, inside=True) for name in self._own.get(one.removeprefix(_OWN), ()))
        elif self._snapshot is not None:
            yield from map(self._node, _called(one, self._snapshot, playbooks=self._reads))


def _called(name: str, snapshot: Snapshot, *, playbooks: bool) -> list[str]:
    """Return the names that a pipeline calls, or a playbook."""
    from quire.library.callees import called_names

    try:
        registered = snapshot.registry().pipelines.get(name)
        if registered is not None:
            return list(called_names(registered.plan))
        document = snapshot.find(name, ("playbook",)) if playbooks else None
    except QuireError:
        return []
    return list(called_names(document.plan)) if document is not None and document.plan is not None else []
