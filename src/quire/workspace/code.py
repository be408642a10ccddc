"""Find the files of a workspace that Python would load for an import, with their hashes.

The hashes are part of what the user confirms, and `quire.tools.confirmed_imports` loads only files that still match. So
a file that an import reaches in an unusual way may be left out (then it does not load); nothing has to be guessed.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import BadConfiguration
from quire.os_flags import NO_WAIT

if TYPE_CHECKING:
    import ast

SUFFIXES = (".py", ".pyc", ".so", ".pyd")
MAX_SOURCE_BYTES = 5_000_000
MAX_LIBRARY_BYTES = 200_000_000
MAX_FILES = 2_000
MAX_ENTRIES = 50_000

_BLOCK = 1 << 20
_INSTALLED = ("site-packages", "dist-packages")
_CALLS = ("import_module", "__import__")


class Code(Struct):
    """The files that imports load, found from the names and files that are added."""

    root: Path
    here: bool = False
    """True if the imports happen in this interpreter: packages that it takes from the workspace (editable installs)
    count too, and `missing` gets the names that it does not find."""
    files: dict[str, str] = field(default_factory=dict)
    """Paths relative to `root` with their sha256, or with the reason why they cannot be loaded."""
    missing: set[str] = field(default_factory=set)
    _seen: set[tuple[Path, str]] = field(default_factory=set)
    _entries: int = 0

    def add_import(self, name: str, folders: Iterable[Path]) -> bool:
        """Add all files that an import of the name may run, and their imports; return False if no folder has it."""
        top, folders = name.partition(".")[0], tuple(folders)
        added = [self._add_from(folder, top, folders) for folder in folders]
        if any(added) or not self.here or top == "quire" or not top.isidentifier():
            return any(added)
        places = _places(top)
        if not places:
            self.missing.add(top)
        # A folder in the workspace, as for an editable install.
        inside = (place for place in places if place.is_relative_to(self.root))
        folder = next((place for place in inside if not any(part in _INSTALLED for part in place.parts)), None)
        return folder is not None and self._add_from(folder, top, (*folders, folder))

    def add_file(self, file: Path, folders: Iterable[Path]) -> None:
        """Add a file and, if it is Python, its imports."""
        path = Path(os.path.abspath(file)).relative_to(self.root).as_posix()  # noqa: PTH100  # a link keeps its name
        if path in self.files:
            return
        if len(self.files) >= MAX_FILES:
            raise BadConfiguration(f"{self.root}: more than {MAX_FILES:,} files of code would be loaded from here")
        self.files[path], source = read_hashed(file)
        folders = tuple(folders)
        for name in sorted(imported_names(source)) if source and file.suffix == ".py" else ():
            # Python's own modules come first for all these imports: a file with such a name is not loaded.
            if name not in sys.stdlib_module_names:
                self.add_import(name, folders)

    def add_folder(self, folder: Path, folders: Iterable[Path], *, deep: bool = True) -> bool:
        """Add the code that can be imported from a folder, without `__pycache__`; return False if there is none."""
        before, folders = len(self.files), tuple(folders)
        for here, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if deep and name.isidentifier() and name != "__pycache__")
            self._entries += len(below) + len(names)
            if self._entries > MAX_ENTRIES:
                raise BadConfiguration(f"{folder}: too many files to look through for code that is imported")
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    self.add_file(Path(here, name), folders)
        return len(self.files) > before

    def _add_from(self, folder: Path, top: str, folders: tuple[Path, ...]) -> bool:
        if (folder, top) in self._seen:
            return True
        paths = sorted(path for path in _entries(folder) if path.name.partition(".")[0] == top)
        modules = [path for path in paths if path.suffix in SUFFIXES and path.is_file()]
        package = folder / top
        if modules or package.is_dir():
            self._seen.add((folder, top))
        for path in modules:
            self.add_file(path, folders)
        return (package.is_dir() and self.add_folder(package, folders)) or bool(modules)


def read_hashed(file: Path) -> tuple[str, bytes]:
    """Return the sha256 of a file, or the reason why it cannot be loaded; and its content, if it is small enough to
    look into."""
    limit = MAX_SOURCE_BYTES if file.suffix == ".py" else MAX_LIBRARY_BYTES
    digest, content, size = hashlib.sha256(), bytearray(), 0
    try:
        opened = os.open(file, os.O_RDONLY | NO_WAIT)
        with os.fdopen(opened, "rb") as stream:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return "not a regular file", b""
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > limit:
                    return f"larger than {limit:,} bytes", b""
                digest.update(block)
                if size <= MAX_SOURCE_BYTES:
                    content += block
    except OSError as error:
        return f"not readable: {error.strerror or error}", b""
    return digest.hexdigest(), bytes(content) if size <= MAX_SOURCE_BYTES else b""


def is_hash(text: str) -> bool:
    return len(text) == 64 and " " not in text


@functools.lru_cache(maxsize=512)
def imported_names(source: bytes) -> frozenset[str]:
    """Return the top-level names that a source imports anywhere in it. Text that is not Python imports nothing."""
    import ast  # milliseconds that a workspace without modules does not need
    import warnings

    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(name.partition(".")[0] for node in ast.walk(tree) for name in _named(node))


def _named(node: ast.AST) -> Iterator[str]:
    import ast

    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            yield module
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]):
            if called in _CALLS and not name.startswith("."):
                yield name


def _places(top: str) -> list[Path]:
    """Return the folders from which this interpreter would import a name."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None:
        return []
    packages = [Path(place).parent for place in spec.submodule_search_locations or ()]
    return packages or [Path(spec.origin or os.sep).parent]


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries]
    except OSError:
        return []
