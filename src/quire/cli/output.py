"""Files that a verb writes: the result (`--out FILE` and `--out FOLDER/`) and reports beside it.

Problems that can be known in advance are found before the work, and a file is written whole or not at all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.errors import CannotStart
from quire.plan.vocabulary import EXTENSIONS
from quire.source import written_beside

if TYPE_CHECKING:
    from quire.engine.records import RunRow


_ALSO = {"markdown": (".markdown", ".txt"), "html_css": (".htm",), "mermaid": (".mermaid",)}


class Target(Struct, frozen=True):
    """A file or folder for the output."""

    path: Path
    """The folder, or the file, perhaps still without its extension."""
    folder: bool
    """True if `path` is a folder."""
    document: Path

    def file(self, artifact_type: str) -> Path:
        extension = EXTENSIONS.get(artifact_type, ".md")
        if self.folder:
            stem = self.document.name.removesuffix(".md").removesuffix(".playbook").removesuffix(".yaml") or "output"
            named = self.path / f"{stem}{extension}"
            return self.path / f"{stem}.output{extension}" if _same(named, self.document) else named
        if self.path.suffix or _special(self.path):
            return self.path
        return self.path.with_name(self.path.name + extension)

    @property
    def kept(self) -> str:
        """The target as the run stores it: absolute, because the run may be continued from another folder; empty for a
        pipe, which will be gone by then."""
        if _special(self.path):
            return ""
        return os.path.abspath(self.path) + (os.sep if self.folder else "")  # noqa: PTH100  # links stay as they are


def target_again(out: str | None, row: RunRow) -> Target | None:
    """Return the output target of a run that continues: the one given now, else the one given at its start.

    Raises `CannotStart`.
    """
    if out:
        return target(out, row.document)
    stored = str(row.pins.get("out") or "")
    if not stored:
        return None
    whole, here = Path(stored), Path.cwd()
    shown = str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
    try:
        return _target(shown + (os.sep if stored.endswith(os.sep) else ""), row.document)
    except CannotStart as error:
        raise CannotStart(f"{error}; so it was said when the run was started, --out says otherwise") from None


def target(out: str, document: str) -> Target | None:
    """Return the output target; None for `-`, which is stdout. Raises `CannotStart` if it cannot be written."""
    return None if out == "-" else _target(out, document)


def _target(out: str, document: str) -> Target:
    path = Path(out)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise CannotStart(f"--out {out}: {error.strerror or error}") from None
    folder = path.is_dir() or out.endswith(("/", os.sep))
    where = path if folder else path.parent
    if not where.is_dir():
        raise CannotStart(f"--out {out}: the folder {where} does not exist")
    if not _special(path) and not os.access(where, os.W_OK | os.X_OK):
        raise CannotStart(f"--out {out}: the folder {where} cannot be written to")
    if path.is_file() and not os.access(path, os.W_OK):
        raise CannotStart(f"--out {out}: that file cannot be written to")
    to = Target(path, folder, Path(document))
    if not folder and any(_same(to.file(kind), to.document) for kind in ("markdown", "")):
        raise CannotStart(f"--out {out}: that is the document itself")
    return to


def write(to: Target, output: str, artifact_type: str) -> tuple[Path, list[str]]:
    """Write the whole file or nothing; return its path and warnings. Raises OSError."""
    path, warnings = to.file(artifact_type), []
    expected = EXTENSIONS.get(artifact_type)
    fitting = (expected, *_ALSO.get(artifact_type, ()))
    if expected and artifact_type != "text" and not _special(path) and path.suffix.lower() not in fitting:
        warnings.append(f"{path} holds {artifact_type}, which usually ends in {expected}")
    text = output if output.endswith("\n") or not output else output + "\n"
    _replace(path, text.encode())
    return path, warnings


def _replace(path: Path, data: bytes) -> None:
    if _special(path):
        # Write to a pipe or a device; never replace it.
        path.write_bytes(data)
        return
    path = path.resolve()
    mode = path.stat().st_mode & 0o7777 if path.exists() else None
    with written_beside(path, data, 0o666 if mode is None else 0o600) as new:
        if mode is not None:
            new.chmod(mode)
        new.replace(path)


def _special(path: Path) -> bool:
    # Not the methods of `Path`: for a name that is too long they raise.
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)  # noqa: PTH110, PTH112, PTH113


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def require_writable(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Reject a file that cannot be written. For `callback=`."""
    if value is None:
        return None
    name = parameter.opts[0]
    path = Path(value)
    if not value.strip():
        raise click.UsageError(f"{name} is empty", context)
    if os.path.isdir(path):  # noqa: PTH112  # a name that is too long: False, not an exception
        raise click.UsageError(f"{name} {value}: that is a folder", context)
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise click.UsageError(f"{name} {value}: the folder {path.parent} does not exist", context)
    if not os.access(path if _special(path) else path.parent, os.W_OK):
        raise click.UsageError(f"{name} {value}: it cannot be written", context)
    return value


def write_report(file: str, text: str) -> None:
    """Write the whole file. Raises `CannotStart`."""
    try:
        _replace(Path(file), text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise CannotStart(f"{file} cannot be written: {error.strerror or error}") from None
