"""The file that a run's document was read from, to see whether it has changed since."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.library.collect import collect
from quire.source import read_source

if TYPE_CHECKING:
    from quire.engine.records import RunRow


class PinnedFile(Struct, frozen=True):
    """A document of the workspace. `id` is its path in the workspace."""

    id: str
    path: Path
    sha256: str
    """The hash of the text that the run has."""

    def text(self) -> str | None:
        """Return the text as it is now; None if the file is gone or not a document."""
        wanted, _ = collect([str(self.path)]) if self.path.is_file() else ((), ())
        try:
            return read_source(self.path).text if wanted else None
        except (QuireError, OSError):
            return None

    def changed(self) -> bool:
        """Return True if the file is there and has another text."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        now = _hash_of(self.path, found.st_mtime_ns, found.st_size)
        return bool(now) and now != self.sha256


@functools.lru_cache(maxsize=500)
def _hash_of(path: Path, written: int, size: int) -> str:
    """Return the hash of a text. The time and the size make the cache forget a file that was written."""
    try:
        return hashlib.sha256(read_source(path).text.encode()).hexdigest()
    except (QuireError, OSError):
        return ""


def pinned_file(folder: Path, row: RunRow) -> PinnedFile | None:
    """Return the file of a run's document; None if it was not one of this workspace."""
    beside = row.pins.get("folder")
    place = Path(str(beside)) / Path(row.document).name if beside else Path(row.document)
    path = (folder / place).resolve()
    root = folder.resolve()
    if not path.is_relative_to(root):
        return None
    return PinnedFile(path.relative_to(root).as_posix(), path, str(row.pins.get("document", "")))
