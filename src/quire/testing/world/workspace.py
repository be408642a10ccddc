"""The workspace of a case: its settings, a fresh folder for its files, and its processes, which can die.

Documents are read where they are; tools only see the folder. A case that edits documents gets a copy of them there.
Dying is an exception that the engine does not catch for good. Clean-up code runs, as it would not after a real death,
but the store of a dead process raises the same exception for everything, so it changes nothing.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.errors import CannotStart, Unreadable
from quire.source import real_path
from quire.stores.sqlite.in_memory import Memory, MemoryStore
from quire.workspace.locate import Workspace, find_workspace

if TYPE_CHECKING:
    from quire.engine.records import Batch, Lease, WriteResult
    from quire.formats.test.syntax import FileContent
    from quire.workspace.settings import Settings


MOST_COPIED = 2_000
"""Files of a workspace that are copied for a case that edits documents."""
MOST_BYTES = 20_000_000
MOST_LISTED = 1_000
_NOT_COPIED = (".git", ".quire", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache")


def rehearsal_settings(around: Path) -> Settings:
    """Return the settings of the workspace around a document, as on a machine without a user's own settings."""
    from quire.workspace.configuration import load_settings

    nowhere = {"QUIRE_HOME": str(around / ".quire" / "no-user")}
    settings = load_settings(find_workspace(around, {}), nowhere)
    return replace(settings, rehearsal=True, store_url=None, excess=())


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """Return the place for folders of cases: in memory where Linux has that, because a disk is slow to remove them."""
    memory = Path("/dev/shm")  # noqa: S108
    if "TMPDIR" not in os.environ and memory.is_dir() and os.access(memory, os.W_OK):
        return memory
    return real_path(Path(tempfile.gettempdir()))


class CaseFolder:
    """The folder of one case. It is made when it is first needed, and removed with everything in it."""

    def __init__(self, files: Mapping[str, FileContent], beside: Path) -> None:
        """`beside` is the folder of the test, from which files are copied."""
        self.is_made = False
        self._files = files
        self._beside = beside
        self._root = _temporary() / f"quire-test-{secrets.token_hex(8)}"

    @cached_property
    def path(self) -> Path:
        """The folder that tools see, whether or not it is made yet."""
        return self._root / "files"

    @cached_property
    def user(self) -> Path:
        """The user folder of the case."""
        return self._root / "user"

    def require_sources(self, files: Mapping[str, FileContent]) -> None:
        """Raise `Unreadable` if a file that is to be copied is missing, also if no tool would ever look at it."""
        for content in files.values():
            if content.copy_of and not (source := self._beside / content.copy_of).is_file():
                raise Unreadable(source, "does not exist" if not source.exists() else "is not a file")

    def make(self) -> None:
        """Make the folder with the files of the case, unless that was done."""
        if not self.is_made:
            self.is_made = True
            self._root.mkdir(mode=0o700)
            self.path.mkdir()
            self.write(self._files)

    def copy_workspace(self, workspace: Path) -> Workspace:
        """Copy the documents of a workspace into the folder. Raises `CannotStart` if there are too many files."""
        self.make()
        target, count, size = self.path, 0, 0
        for source in sorted(workspace.rglob("*")):
            inner = source.relative_to(workspace)
            if any(part in _NOT_COPIED for part in inner.parts) or source.is_symlink() or not source.is_file():
                continue
            count, size = count + 1, size + source.stat().st_size
            if count > MOST_COPIED or size > MOST_BYTES:
                raise CannotStart(f"{workspace} has too many files to copy them for a case that edits documents")
            (target / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / inner)
        self.write(self._files)
        return Workspace(target)

    def write(self, files: Mapping[str, FileContent]) -> None:
        """Write files of a case. The reader has refused paths that leave the folder."""
        self.make()
        for name, content in files.items():
            path = self._inside(name)
            if content.text is None and not content.copy_of:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._bytes(content))

    def listing(self) -> dict[str, str | None]:
        """Return the files of the folder with their texts; None for a file that is not text."""
        if not self.is_made:
            return {}
        texts: dict[str, str | None] = {}
        for path in sorted(self.path.rglob("*"))[:MOST_LISTED]:
            if path.is_symlink() or not path.is_file():
                continue
            try:
                text: str | None = path.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                text = None
            texts[path.relative_to(self.path).as_posix()] = text
        return texts

    def remove(self) -> None:
        if self.is_made:
            shutil.rmtree(self._root, ignore_errors=True)
            self.is_made = False

    def _inside(self, name: str) -> Path:
        root = self.path
        path = real_path(root / name)
        if path == root or not path.is_relative_to(root):
            raise CannotStart(f"{name} is outside of the folder of the case")
        return path

    def _bytes(self, content: FileContent) -> bytes:
        if content.text is not None:
            return content.text.encode()
        source = real_path(self._beside / content.copy_of)
        if not source.is_relative_to(real_path(self._beside)):
            raise CannotStart(f"{content.copy_of} is outside of the folder of the test")
        try:
            return source.read_bytes()
        except OSError as error:
            raise Unreadable(source, f"cannot be read: {error.strerror or error}") from None


class Died(BaseException):
    """The process of a case is gone."""


class CaseProcess:
    """One process of a case. It dies at the moment with the number `dies_at`; 0 for never.

    Moments are before and after each write of a run, so their number tells how often a case has to be repeated to die
    everywhere.
    """

    def __init__(self, dies_at: int = 0) -> None:
        self.moments = 0
        self.dead = False
        self._dies_at = dies_at

    @property
    def died_in_turn(self) -> bool:
        """Tell whether it died at the moment with that number, and not because a script says so."""
        return self.dead and self.moments == self._dies_at

    def moment(self) -> None:
        """Pass one moment. Raises `Died` if it is the last one."""
        self.must_live()
        self.moments += 1
        if self.moments == self._dies_at:
            self.die()

    def die(self) -> None:
        self.dead = True
        raise Died

    def must_live(self) -> None:
        if self.dead:
            raise Died


class MortalStore(MemoryStore):
    """The store as one process has it open."""

    def __init__(self, memory: Memory, now: Callable[[], float], process: CaseProcess) -> None:
        super().__init__(memory, now=now)
        self._process = process

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        self._process.must_live()
        return await super().acquire(run, after=after)

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        self._process.moment()
        written = await super().write(lease, batch)
        self._process.moment()
        return written

    async def park(self, lease: Lease, batch: Batch) -> bool:
        self._process.moment()
        parked = await super().park(lease, batch)
        self._process.moment()
        return parked

    async def release(self, lease: Lease) -> None:
        if not self._process.dead:
            await super().release(lease)
