"""`make vendor`: fetches the packages of VENDOR.toml from the npm registry and unpacks the files that it lists.

A tarball or a file that differs from its recorded sha512 stops everything. To take another version, change `version` in
VENDOR.toml and run `make vendor UPDATE=1`: it records the sums of what the registry has, for review in the commit.
A bundle is made anew of its packages by its tool, which `npx` fetches, and has to come out the same byte for byte.
"""

from __future__ import annotations

import argparse
import io
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from tests.vendor.manifest import (
    FOLDERS,
    ROOT,
    Bundle,
    File,
    Package,
    bundles,
    digest,
    integrity,
    problems,
    read,
    with_files,
    write,
)

_IMPORTED = re.compile(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"')
_LIMIT = 64 * 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="make vendor")
    parser.add_argument("--update", action="store_true", help="record new sums instead of requiring the old ones")
    update = parser.parse_args().update
    registry = _registry()
    for folder in FOLDERS:
        with tempfile.TemporaryDirectory() as place:
            packages = [_fetch(package, folder, registry, update, Path(place)) for package in read(folder)]
            made = [_make(bundle, folder, update, Path(place)) for bundle in bundles(folder)]
        if update:
            write(folder, packages, made)
        found = problems(folder)
        if found:
            raise SystemExit("\n".join(f"{folder.name}: {problem}" for problem in found))
        print(f"{folder.name}: {', '.join(f'{package.name} {package.version}' for package in packages)}")
    return 0


def _registry() -> str:
    """The registry of `NPM_REGISTRY`, or the one that npm is configured with."""
    named = os.environ.get("NPM_REGISTRY")
    if not named:
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm is not installed: name a registry in NPM_REGISTRY")
        named = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, check=True).stdout
    return named.strip().rstrip("/")


def _fetch(package: Package, folder: Path, registry: str, update: bool, place: Path) -> Package:
    file_name = f"{package.name.rpartition('/')[2]}-{package.version}.tgz"
    with urllib.request.urlopen(f"{registry}/{package.name}/-/{file_name}", timeout=120) as response:
        tarball = response.read(_LIMIT)
    if not update and integrity(tarball) != package.integrity:
        raise SystemExit(f"{package.name} {package.version}: the tarball is not the one in VENDOR.toml")
    contents = _contents(tarball)
    files = [File(file.name, file.source, digest(contents[file.source])) for file in _wanted(package, contents)]
    if update:
        for file in package.files:
            (folder / file.name).unlink(missing_ok=True)
    elif files != list(package.files):
        raise SystemExit(f"{package.name} {package.version}: a file is not the one in VENDOR.toml")
    for file in files:
        target = folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents[file.source])
    for name, content in contents.items() if package.bundled else ():
        target = place / "node_modules" / package.name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return with_files(package, files, tarball)


def _make(bundle: Bundle, folder: Path, update: bool, place: Path) -> Bundle:
    """Bundle the packages below a place."""
    entry = shutil.copy(ROOT / bundle.entry, place / "entry.js")
    made = place / bundle.name
    command = ["npx", "--yes", bundle.tool, str(entry), *bundle.options, f"--outfile={made}"]
    subprocess.run(command, cwd=place, check=True)
    if not update and digest(made.read_bytes()) != bundle.sha512:
        raise SystemExit(f"{bundle.name}: the bundle is not the one in VENDOR.toml")
    shutil.copy(made, folder / bundle.name)
    return replace(bundle, sha512=digest(made.read_bytes()))


def _contents(tarball: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tarball), mode="r:gz") as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        return {name.partition("/")[2]: stream.read() for name, stream in members if stream is not None}


def _wanted(package: Package, contents: dict[str, bytes]) -> list[File]:
    """The listed files; where the package names a module to follow, its imports as this version has them."""
    if not package.modules:
        return list(package.files)
    top = posixpath.dirname(package.modules)
    followed = {f"{package.name}/{posixpath.relpath(name, top)}": name for name in _imports(package, contents)}
    single = [file for file in package.files if not file.source.startswith(f"{top}/")]
    return single + [File(name, source, "") for name, source in sorted(followed.items())]


def _imports(package: Package, contents: dict[str, bytes]) -> set[str]:
    found: set[str] = set()
    todo = [package.modules]
    while todo:
        name = todo.pop()
        if name in found or any(fnmatch(posixpath.basename(name), pattern) for pattern in package.without):
            continue
        found.add(name)
        imported = _IMPORTED.findall(contents[name].decode())
        todo += [posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) for target in imported]
    return found


if __name__ == "__main__":
    sys.exit(main())
