"""How this Quire was installed, and the command that adds an optional part to it in the same way.

Only files of this Python's own environment are read: a receipt in a folder that a user works in means nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

DISTRIBUTION = "quire-run"
"""The name of the package on an index. The name `quire` belongs to another project there."""
IMAGE = "quire-image"
"""A file in the environment of a container image, written when the image is built."""


def docs_folder() -> Path:
    """Return the folder of the documentation: that of the package, or in a checkout that of the sources."""
    package = Path(__file__).parent
    return package / "docs" if (package / "docs").is_dir() else package.parent.parent / "docs"


def add_extra(extra: str) -> str:
    """Return the command that installs Quire again with one more extra."""
    return _command(extra)


def add_package(requirement: str) -> str:
    """Return the command that installs another package beside Quire."""
    return _command("", requirement)


def other_owners() -> list[str]:
    """Return other packages of this environment that have installed a `quire/__init__.py` too."""
    from sysconfig import get_path

    own, owners = f"{DISTRIBUTION.replace('-', '_')}-", []
    for record in Path(get_path("purelib")).glob("*.dist-info/RECORD"):
        name = record.parent.name.removesuffix(".dist-info")
        if not name.startswith(own) and b"\nquire/__init__.py," in b"\n" + record.read_bytes():
            owners.append(name)
    return owners


def _command(extra: str, beside: str = "") -> str:
    import shlex

    prefix = Path(sys.prefix)
    if (prefix / IMAGE).is_file():
        return f"use the image with the tag -full, or add {beside or extra} to an image of your own"
    if receipt := _uv_requirement(prefix / "uv-receipt.toml"):
        tool = f"uv tool install --force {shlex.quote(_with_extra(*receipt, extra))}"
        return f"{tool} --with {shlex.quote(beside)}" if beside else tool
    if package := _pipx_package(prefix / "pipx_metadata.json"):
        if beside:
            return f"pipx inject {DISTRIBUTION} {shlex.quote(beside)}"
        return f"pipx install --force {shlex.quote(_with_extra(package, (), extra))}"
    source, is_editable = _source()
    if is_editable and not beside:
        return f"make setup in {shlex.quote(source)}"
    requirement = shlex.quote(beside or _with_extra(source or DISTRIBUTION, (), extra))
    if any(
        part.startswith("archive-v") for part in prefix.parts
    ):  # made by uvx in its cache, for each requirement anew
        return f"uvx --with {requirement} {DISTRIBUTION}"
    python = shlex.quote(sys.executable or "python")
    pip = f"uv pip install --python {python}" if _installer() == "uv" else f"{python} -m pip install"
    return f"{pip} {requirement}"


def _with_extra(requirement: str, extras: tuple[str, ...], extra: str) -> str:
    """Return a requirement with one more extra: a name with or without a version, a path, or an address."""
    if "://" in requirement and " @ " not in requirement:
        requirement = f"{DISTRIBUTION} @ {requirement}"
    if not requirement.startswith(DISTRIBUTION):
        return f"{requirement}[{','.join((*extras, extra))}]" if extra or extras else requirement
    rest = requirement.removeprefix(DISTRIBUTION)
    if rest.startswith("["):
        listed, _, rest = rest[1:].partition("]")
        extras = (*extras, *(name.strip() for name in listed.split(",")))
    wanted = dict.fromkeys(filter(None, (*extras, extra)))
    return f"{DISTRIBUTION}[{','.join(wanted)}]{rest}" if wanted else f"{DISTRIBUTION}{rest}"


def _uv_requirement(receipt: Path) -> tuple[str, tuple[str, ...]] | None:
    """Return what `uv tool install` was given, and its extras. None if this is not an environment of uv."""
    import tomllib

    try:
        requirements = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
        entry = next(entry for entry in requirements if entry["name"] == DISTRIBUTION)
        extras = tuple(map(str, entry.get("extras", ())))
        place = next((entry[key] for key in ("path", "directory", "editable", "url") if key in entry), None)
        if "git" in entry:
            place = f"git+{entry['git']}"
        return (str(place) if place else f"{DISTRIBUTION}{entry.get('specifier', '')}"), extras
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return None


def _pipx_package(metadata: Path) -> str:
    import json

    try:
        return str(json.loads(metadata.read_text("utf-8"))["main_package"]["package_or_url"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _installer() -> str:
    """Return the program that installed Quire. The environments of uv have no pip."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return (distribution(DISTRIBUTION).read_text("INSTALLER") or "").strip()
    except (PackageNotFoundError, OSError, ValueError):
        return ""


def _source() -> tuple[str, bool]:
    """Return the folder, file or address that pip installed Quire from, and whether it is editable. The source is empty
    for a package of an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return "", False
    address = str(origin.get("url", ""))
    place = unquote(urlsplit(address).path) if address.startswith("file:") else address
    return place, bool(origin.get("dir_info", {}).get("editable"))
