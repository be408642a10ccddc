"""Shorten the imports of a command: find Quire's own modules without a search, and load msgspec alone.

A command loads 40 to 230 modules of Quire. Python searches for each of them: it compares the listing of a folder with
five endings, computes where the compiled code is, and asks the file system four times. The folder is known here, so two
questions are enough. Every module that is not as expected is left to Python's own way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from marshal import loads
from types import CodeType, ModuleType

import quire

_COMPILED = f".{sys.implementation.cache_tag}.pyc"
_VERSION = MAGIC_NUMBER + bytes(4)
"""How compiled code begins that goes by the time and the size of its text, which follow."""
_HEADER = len(_VERSION) + 8


def shorten_imports() -> None:
    """Take the short ways from here on, where Python is set up as usual and Quire is installed as files."""
    if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
        sys.meta_path.insert(0, _StructsFinder)
    installed = quire.__spec__ is not None and type(quire.__spec__.loader) is SourceFileLoader
    if installed and sys.pycache_prefix is None and not sys.flags.optimize:
        sys.meta_path.insert(0, _OwnFinder)


class _OwnFinder:
    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if path is None or len(path) != 1 or not name.startswith("quire."):
            return None
        folder, last = path[0], name.rpartition(".")[2]
        for place, stem in ((folder, last), (f"{folder}{os.sep}{last}", "__init__")):
            file = f"{place}{os.sep}{stem}.py"
            try:
                status = os.stat(file)  # noqa: PTH116  # a path object takes longer than the question
            except OSError:
                continue
            loader = _OwnLoader(name, file)
            loader.compiled = f"{place}{os.sep}__pycache__{os.sep}{stem}{_COMPILED}"
            loader.header = b"".join((_VERSION, _four_bytes(status.st_mtime), _four_bytes(status.st_size)))
            spec = ModuleSpec(name, loader, origin=file, is_package=place != folder)
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(place)
            spec.has_location = True
            spec.cached = loader.compiled
            return spec
        return None


class _OwnLoader(SourceFileLoader):
    compiled: str
    header: bytes
    """How the compiled code has to begin so that it is the one of the text."""

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            with open(self.compiled, "rb", buffering=0) as file:  # noqa: PTH123  # as above
                data = file.read()
        except OSError:
            return super().get_code(fullname)
        if data[:_HEADER] == self.header:
            code = loads(memoryview(data)[_HEADER:])  # noqa: S302  # as Python itself does
            # Code that was compiled in another folder gets the names of its files from Python's own way.
            if isinstance(code, CodeType) and code.co_filename == self.path:
                return code
        return super().get_code(fullname)


def _four_bytes(number: float) -> bytes:
    return (int(number) & 0xFFFFFFFF).to_bytes(4, "little")


class _StructsFinder:
    """Make the import of msgspec, which defines all values of Quire, as short as it can be.

    It asks `typing_extensions` for three names, which takes as long as a quarter of a bare Python, and takes them from
    `typing` where that is not installed: since Python 3.11 they are the same. It is hidden while msgspec is loaded.
    """

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name != "msgspec":
            return None
        sys.meta_path.remove(cls)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None and "typing_extensions" not in sys.modules:
            spec.loader.exec_module = _hiding(spec.loader.exec_module)  # type: ignore[assignment, method-assign]
        return spec


def _hiding(load: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def load_without(module: ModuleType) -> None:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        try:
            load(module)
        finally:
            del sys.modules["typing_extensions"]

    return load_without
