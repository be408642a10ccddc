"""Import from a workspace only the files that the user confirmed, as they were confirmed.

A file is read once, its hash is compared, and those bytes are executed: a file that was changed or added in between
does not load. No compiled file is written, and one is read only if it was confirmed. Modules of the workspace come
after everything that is installed, so none of them can replace a library.

This file is also a program: `python confirmed_imports.py SCRIPT ARGUMENTS` starts a confirmed MCP server with whichever
Python its command names. So it imports nothing of Quire and is limited to Python 3.9.
"""

# Paths as the import system has them: texts, with links not followed.
# ruff: noqa: PTH113, PTH118, PTH119, PTH123, PTH206

from __future__ import annotations

import sys

if __name__ == "__main__" and sys.path and sys.path[0] == __file__.rpartition("/")[0]:
    del sys.path[0]  # the modules beside this file belong to Quire, not to the server

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import types
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

VARIABLE = "QUIRE_CONFIRMED"
MAX_BYTES = 200_000_000

_INSTALLED = ("site-packages", "dist-packages")
_SUFFIXES = (
    *importlib.machinery.EXTENSION_SUFFIXES,
    *importlib.machinery.SOURCE_SUFFIXES,
    *importlib.machinery.BYTECODE_SUFFIXES,
)


class NotConfirmed(ModuleNotFoundError):
    """A module of the workspace that was not confirmed, or has changed since."""


class ConfirmedImports(MetaPathFinder):
    """Finds modules in `folders` of the workspace `root`; `files` are paths below it with their sha256.

    Modules named in `first` come from the workspace, even if others are installed. Top-level names are only looked up
    while `active`; submodules of loaded modules always.
    """

    def __init__(self, root: str, folders: Sequence[str], files: Mapping[str, str], first: Sequence[str] = ()) -> None:
        self.active = True
        self._root = os.path.join(root, "")
        self._folders = tuple(folders)
        self._files = dict(files)
        self._first = tuple(first)
        self._tops: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        top, dot, _ = fullname.partition(".")
        if dot:
            if top not in self._tops:
                return None
            return self._spec(self._tops[top], fullname) or self._refuse(fullname)
        if not self.active:
            return None
        installed = None if top in self._first else self._elsewhere(fullname, path)
        if installed is not None and not self._is_in_workspace(installed):
            return installed
        for folder in self._folders:
            spec = self._spec(folder, fullname)
            if spec is not None:
                self._tops[top] = folder
                return spec
        if installed is not None or self._lies_here(top):
            self._refuse(fullname)
        return None

    @property
    def is_used(self) -> bool:
        """True if anything was loaded from here."""
        return bool(self._tops)

    def read(self, file: str) -> bytes:
        """Return the bytes of a confirmed file. Raises `NotConfirmed`."""
        name = file[len(self._root) :].replace(os.sep, "/") if file.startswith(self._root) else ""
        digest = self._files.get(name, "")
        if len(digest) != 64:
            raise NotConfirmed(f"{name or file} was not confirmed{': it is ' + digest if digest else ''}")
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if hashlib.sha256(data).hexdigest() != digest:
            raise NotConfirmed(f"{name} was changed since it was confirmed: quire trust workspace")
        return data

    def _spec(self, folder: str, fullname: str) -> ModuleSpec | None:
        place = os.path.join(folder, *fullname.split("."))
        for suffix in _SUFFIXES:
            file = os.path.join(place, "__init__" + suffix)
            if self._has(file):
                return self._loaded(fullname, file, suffix, [place])
        for suffix in _SUFFIXES:
            if self._has(place + suffix):
                return self._loaded(fullname, place + suffix, suffix, None)
        below = os.path.join(place, "")[len(self._root) :].replace(os.sep, "/")
        if any(name.startswith(below) for name in self._files):
            namespace = ModuleSpec(fullname, None, is_package=True)
            namespace.submodule_search_locations = [place]
            return namespace
        return None

    def _loaded(self, fullname: str, file: str, suffix: str, places: list[str] | None) -> ModuleSpec | None:
        loader: Loader
        if suffix in importlib.machinery.SOURCE_SUFFIXES:
            loader = _Source(fullname, file, self)
        elif suffix in importlib.machinery.BYTECODE_SUFFIXES:
            loader = _Compiled(fullname, file, self)
        else:
            file = _private_copy(self.read(file), os.path.basename(file))
            loader = importlib.machinery.ExtensionFileLoader(fullname, file)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=places)

    def _has(self, file: str) -> bool:
        return file.startswith(self._root) and file[len(self._root) :].replace(os.sep, "/") in self._files

    def _elsewhere(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path) if find and not isinstance(finder, ConfirmedImports) else None
            if spec is not None:
                return spec  # type: ignore[no-any-return]
        return None

    def _is_in_workspace(self, spec: ModuleSpec) -> bool:
        """Tell whether a module lies in the workspace, even if a module of the workspace put its folder on `sys.path`.
        Virtual environments count as installed."""
        places = [*(spec.submodule_search_locations or ())]
        if spec.has_location and spec.origin:
            places.append(spec.origin)
        inside = [place for place in map(os.path.abspath, places) if place.startswith(self._root)]
        return any(not any(part in _INSTALLED for part in place.split(os.sep)) for place in inside)

    def _lies_here(self, top: str) -> bool:
        return any(os.path.isfile(os.path.join(folder, top + ".py")) for folder in self._folders)

    def _refuse(self, fullname: str) -> ModuleSpec | None:
        raise NotConfirmed(
            f"No module named {fullname!r} was confirmed in {self._root}: a module of a workspace must exist, and be "
            "imported by an import statement, when the workspace is confirmed",
            name=fullname,
        )


class _Source(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, confirmed: ConfirmedImports) -> None:
        super().__init__(fullname, path)
        self._confirmed = confirmed

    def get_code(self, fullname: str) -> types.CodeType:
        code: types.CodeType = self.source_to_code(self._confirmed.read(self.path), self.path)
        return code


class _Compiled(importlib.machinery.SourcelessFileLoader):
    def __init__(self, fullname: str, path: str, confirmed: ConfirmedImports) -> None:
        super().__init__(fullname, path)
        self._confirmed = confirmed

    def get_data(self, path: str) -> bytes:
        return self._confirmed.read(path) if path == self.path else super().get_data(path)


def _private_copy(data: bytes, name: str) -> str:
    """Write a compiled library to a folder that no other account can write, because it is loaded by its path."""
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="quire-library-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(os.path.join(folder, name), "wb") as copy:
        copy.write(data)
    return copy.name


def _main() -> None:
    """Run a confirmed script or module as `python SCRIPT` or `python -m MODULE` would."""
    order = json.loads(os.environ.pop(VARIABLE))
    confirmed = ConfirmedImports(order["root"], order["folders"], order["files"])
    sys.meta_path.insert(0, confirmed)
    del sys.argv[0]
    if order["module"]:
        import runpy

        sys.argv.insert(0, order["module"])
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        return
    script = sys.argv[0]
    code = compile(confirmed.read(order["script"]), script, "exec")
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102


if __name__ == "__main__":
    _main()
