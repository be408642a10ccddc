"""Reads and writes the lists of vendored files, and compares them with what is on disk."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PAGE = Path(__file__).parents[2] / "src" / "quire" / "server" / "page"
FOLDERS = (PAGE / "vendor", PAGE / "vendor-lazy")
NAME = "VENDOR.toml"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class File:
    name: str
    """Its path below the folder of the list."""
    source: str
    """Its path in the package."""
    sha512: str


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    licence: str
    integrity: str
    """Of the tarball, as the registry writes it: `sha512-BASE64`."""
    files: tuple[File, ...]
    modules: str = ""
    """A module of the package that is taken with all modules that it imports, into a folder of the package's name."""
    without: tuple[str, ...] = ()
    """Patterns of imported modules that are left out."""
    bundled: bool = False
    """Its code is a part of the bundles of the list; of its own files only the licence is kept."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file that a tool makes of the packages that are `bundled`."""

    name: str
    entry: str
    """The module that names the parts, from the top of the repository."""
    tool: str
    """The package of npm that makes it, with its version."""
    options: tuple[str, ...]
    sha512: str


def bundles(folder: Path) -> list[Bundle]:
    data = tomllib.loads((folder / NAME).read_text(encoding="utf-8"))
    entries = [{**entry, "options": tuple(entry["options"].split())} for entry in data.get("bundle", [])]
    return [Bundle(**entry) for entry in entries]


def read(folder: Path) -> list[Package]:
    data = tomllib.loads((folder / NAME).read_text(encoding="utf-8"))
    return [_package(entry) for entry in data["package"]]


def write(folder: Path, packages: list[Package], made: list[Bundle]) -> None:
    head = (folder / NAME).read_text(encoding="utf-8").partition("[[")[0]
    entries = [*map(_bundle_entry, made), *map(_entry, packages)]
    (folder / NAME).write_text(head + "\n".join(entries), encoding="utf-8")


def problems(folder: Path) -> list[str]:
    """Compare the folder with its list: changed, missing and unlisted files."""
    listed = {file.name: file.sha512 for package in read(folder) for file in package.files}
    listed |= {bundle.name: bundle.sha512 for bundle in bundles(folder)}
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    there.pop(NAME, None)
    missing = [f"{name} is missing" for name in sorted(listed.keys() - there.keys())]
    unlisted = [f"{name} is not in {NAME}" for name in sorted(there.keys() - listed.keys())]
    both = sorted(listed.keys() & there.keys())
    changed = [f"{name} differs from {NAME}" for name in both if digest(there[name].read_bytes()) != listed[name]]
    return missing + unlisted + changed


def digest(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()


def integrity(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def with_files(package: Package, files: list[File], tarball: bytes) -> Package:
    return replace(package, files=tuple(files), integrity=integrity(tarball))


def _package(entry: dict[str, object]) -> Package:
    files = entry.get("files", {})
    assert isinstance(files, dict)
    without = entry.get("without", [])
    assert isinstance(without, list)
    return Package(
        name=str(entry["name"]),
        version=str(entry["version"]),
        licence=str(entry["licence"]),
        integrity=str(entry["integrity"]),
        files=tuple(File(name, said["from"], said["sha512"]) for name, said in files.items()),
        modules=str(entry.get("modules", "")),
        without=tuple(without),
        bundled=bool(entry.get("bundled")),
    )


def _entry(package: Package) -> str:
    lines = ["[[package]]"]
    for key in ("name", "version", "licence", "integrity"):
        lines.append(f'{key} = "{getattr(package, key)}"')
    if package.modules:
        lines.append(f'modules = "{package.modules}"')
    if package.without:
        lines.append(f"without = {json.dumps(package.without)}")
    if package.bundled:
        lines.append("bundled = true")
    lines.append("[package.files]")
    for file in package.files:
        lines.append(f'"{file.name}" = {{ from = "{file.source}", sha512 = "{file.sha512}" }}')
    return "\n".join(lines) + "\n"


def _bundle_entry(bundle: Bundle) -> str:
    values = {**asdict(bundle), "options": " ".join(bundle.options)}
    return "\n".join(["[[bundle]]", *(f'{key} = "{value}"' for key, value in values.items())]) + "\n"
