"""Find every protected place of a workspace, and detect changes between two surveys.

Some places are protected because others lead to them: the target of a protected name that is a link, the repository
behind a `.git` file, a virtual environment. They are found by the first survey and kept for the second one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.errors import Denied
from quire.os_flags import NO_WAIT
from quire.tools.builtin.paths import GIT_MARKS, GIT_STORES, VENV_MARK, fold

if TYPE_CHECKING:
    from quire.tools.builtin.paths import Protection


MAX_ENTRIES = 1_000_000
_SMALL = 65_536

_MARKS = tuple(map(fold, GIT_MARKS))

Identity = tuple[object, ...]

_GITDIR = re.compile(rb"^gitdir:[ \t]*(.+?)\s*$", re.MULTILINE)
_NAMED_BY_GIT = re.compile(rb"^\s*(?:hookspath|path)\s*=\s*\"?([^\"\r\n]+?)\"?\s*$", re.MULTILINE | re.IGNORECASE)
_PIPELINE = re.compile(rb"""^(["']?)pipeline\1[ \t]*:""", re.MULTILINE)
_YAML = (".yaml", ".yml")


class ProtectedPlaces(Struct, frozen=True):
    """The outermost protected places under `root`, each with an identity that tells it from another file of the same
    name."""

    root: Path
    protection: Protection
    places: Mapping[str, Identity]

    @classmethod
    def of(cls, root: Path, protection: Protection) -> ProtectedPlaces:
        """Survey a workspace for the first time. Raises `Denied` for one with too many entries."""
        walk = _Walk(root, protection, learn=True)
        places = dict(walk.places())
        while walk.protection.closed != protection.closed:
            # A link leads to a folder that may have been looked through already.
            protection = walk.protection
            walk = _Walk(root, protection, learn=True)
            places = dict(walk.places())
        learnt = walk.protection
        asking = (path for path in learnt.asking if not learnt.is_granted([fold(part) for part in path.split("/")]))
        for path in (*learnt.led_to, *asking):
            if not _is_below(path, places) and (identity := _identity(root / path)) is not None:
                places[path] = identity
        # Inode numbers of protected files that have another name somewhere.
        files = ((root / path).lstat() for path, what in places.items() if stat.S_ISREG(_type(what)))
        if shared := frozenset(status.st_ino for status in files if status.st_nlink > 1):
            others = _other_names(root, shared, places)
            learnt = replace(learnt, led_to={**others, **learnt.led_to})
            places |= {path: identity for path in others if (identity := _identity(root / path)) is not None}
        return cls(root, learnt, places)

    def read_only(self, most: int) -> list[Path]:
        """Return the places to bind read-only. Links are left out, because they belong to their folders; their targets
        are listed by name. If there are more than `most`, folders of which a server may run any file are bound as a
        whole, data files included."""
        places = [path for path, what in self.places.items() if not stat.S_ISLNK(_type(what))]
        if len(places) > most:
            run = [path[:-1].rstrip("/") for path in self.protection.closed if path.endswith("*")]
            folders = [folder for folder in run if (self.root / folder).is_dir()]
            places = [path for path in places if "" not in folders and not _is_below(path, folders)] + folders
        return sorted(self.root / path for path in places)

    def changes(self) -> list[str]:
        """Return the places that were created or replaced since. A place that moved with a folder above it is
        unchanged."""
        identities = set(self.places.values())
        now = _Walk(self.root, self.protection, learn=False).places()
        return [
            path
            for path, what in now
            if self.places.get(path) != what and (path in self.places or what not in identities or _type(what) == 0)
        ]


class _Walk(Struct):
    """One walk through the workspace. With `learn`, places that others lead to are added to `protection`."""

    root: Path
    protection: Protection
    learn: bool
    _seen: int = 0
    _pending: deque[tuple[str, ...]] = field(default_factory=lambda: deque([()]))

    def places(self) -> Iterator[tuple[str, Identity]]:
        if "" in self.protection.led_to or "" in self.protection.asking:
            return  # The whole workspace is read-only.
        while self._pending:
            parts = self._pending.popleft()
            folder = self.root.joinpath(*parts)
            try:
                with os.scandir(folder) as scanned:
                    entries = list(scanned)
            except FileNotFoundError:
                continue
            except OSError:
                # A command could make it readable again, so it is not skipped.
                yield "/".join(parts), (*_status(folder), 0)
                continue
            self._count(len(entries))
            if self.learn and parts and any(entry.name == VENV_MARK for entry in entries):
                self._learn("/".join(parts), "/".join(parts))
                if not self.protection.is_granted([fold(part) for part in parts]):
                    continue
            yield from self._repository(parts, entries)
            yield from self._in(parts, entries)

    def _repository(
        self, parts: tuple[str, ...], entries: Sequence[os.DirEntry[str]]
    ) -> Iterator[tuple[str, Identity]]:
        """Yield the files by which git takes a folder for a repository. Learn the folder if it is one already."""
        names = {entry.name.lower() for entry in entries}
        marks = [entry for entry in entries if entry.name.lower() in _MARKS and not entry.is_dir(follow_symlinks=False)]
        if not marks or names.isdisjoint(GIT_STORES):
            return
        if self.learn and names.issuperset(("head", "objects", "refs")):
            path = "/".join(parts)
            self.protection = replace(self.protection, led_to={path: f"{path}/HEAD", **self.protection.led_to})
        for entry in marks:
            if (identity := _identity(Path(entry.path))) is not None:
                yield "/".join((*parts, entry.name)), identity

    def _in(self, parts: tuple[str, ...], entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, Identity]]:
        folded = [fold(part) for part in parts]
        for entry in entries:
            below = (*parts, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if self.protection.covers([*folded, fold(entry.name)], is_folder=is_folder):
                path = "/".join(below)
                identity = _identity(self.root / path)
                if identity is not None:
                    if self.learn:
                        self._follow(path, identity)
                    yield path, identity
            elif is_folder:
                self._pending.append(below)
            elif self.learn and not parts and fold(entry.name).endswith(_YAML) and _is_pipeline(entry):
                self._learn(entry.name, entry.name)

    def _count(self, entries: int) -> None:
        self._seen += entries
        if self._seen > MAX_ENTRIES:
            raise Denied(
                f"permission denied: the workspace has more than {MAX_ENTRIES:,} entries, too many to keep watch over "
                "the protected ones among them"
            )

    def _follow(self, path: str, identity: Identity) -> None:
        """Learn the places that a protected name leads to."""
        place = self.root / path
        if stat.S_ISLNK(_type(identity)):
            self._learn_real(os.path.realpath(place), path)
        if fold(place.name) not in (".git", "git~1"):
            return
        repository = place
        if place.is_file():
            named = _GITDIR.search(_read(place))
            if named is None:
                return
            repository = place.parent / os.fsdecode(named[1])
            self._learn_real(os.path.realpath(repository), path)
        if common := _read(repository / "commondir").strip():
            repository = repository / os.fsdecode(common)
            self._learn_real(os.path.realpath(repository), path)
        for named in _NAMED_BY_GIT.finditer(_read(repository / "config")):
            for base in (place.parent, repository):
                self._learn_real(os.path.realpath(base / os.fsdecode(named[1])), path)

    def _learn_real(self, real: str, via: str) -> None:
        top = str(self.root)
        if real == top or real.startswith(top + os.sep):
            self._learn(real[len(top) + 1 :].replace(os.sep, "/"), via)

    def _learn(self, path: str, via: str) -> None:
        """Protect a place in the same way as the name that leads to it."""
        only_source = path != via and self.protection.is_source([fold(part) for part in via.split("/")])
        if only_source and (self.root / path).is_dir():
            self.protection = replace(self.protection, closed=self.protection.closed | {f"{path}/*".lstrip("/")})
        elif path != via and self.protection.is_closed(via.split("/")):
            self.protection = replace(self.protection, led_to={path: via, **self.protection.led_to})
        else:
            self.protection = replace(self.protection, asking=self.protection.asking | {path})


def put_aside(root: Path, paths: Iterable[str]) -> list[str]:
    """Rename files that were created in protected places, and return the new names. They are not deleted, because
    another process may have made them."""
    moved = []
    for path in paths:
        place, mark = root / path, f"refused-{secrets.token_hex(4)}"
        # The second name is for a place whose name is already too long for more letters.
        for aside in (place.with_name(f"{place.name}.{mark}"), place.with_name(mark)):
            with suppress(OSError):
                if not os.access(place.parent, os.W_OK | os.X_OK):
                    # A command has made its own folder read-only.
                    place.parent.chmod(stat.S_IMODE(place.parent.stat().st_mode) | stat.S_IRWXU)
                place.rename(aside)
                moved.append(str(aside.relative_to(root)))
                break
    return moved


def _status(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _identity(path: Path) -> Identity | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    kind = stat.S_IFMT(status.st_mode)
    if not stat.S_ISLNK(kind):
        return status.st_dev, status.st_ino, kind
    real = os.path.realpath(path)
    return status.st_dev, status.st_ino, kind, real, _status(Path(real))


def _type(identity: Identity) -> int:
    kind = identity[2]
    return kind if isinstance(kind, int) else 0


def _read(path: Path) -> bytes:
    try:
        opened = os.open(path, os.O_RDONLY | NO_WAIT)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        return file.read(_SMALL) if stat.S_ISREG(os.fstat(opened).st_mode) else b""


def _is_pipeline(entry: os.DirEntry[str]) -> bool:
    return entry.is_file() and _PIPELINE.search(_read(Path(entry.path))) is not None


def _is_below(path: str, places: Container[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[: end + 1]) in places for end in range(len(parts)))


def _other_names(root: Path, shared: frozenset[int], places: Mapping[str, Identity]) -> dict[str, str]:
    """Return other names of protected files, each with its protected name: writing through one would change the
    file."""
    first = {what[1]: path for path, what in places.items()}
    names: dict[str, str] = {}
    pending: list[Sequence[str]] = [()]
    while pending:
        parts = pending.pop()
        try:
            with os.scandir(root.joinpath(*parts)) as entries:
                for entry in entries:
                    path = "/".join((*parts, entry.name))
                    if path in places:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((*parts, entry.name))
                    elif entry.inode() in shared and entry.is_file(follow_symlinks=False):
                        names[path] = first[entry.inode()]
        except OSError:
            continue
    return names
