"""Report files that a verb writes beside its output: checked before the work, and written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import click

from quire.errors import CannotStart
from quire.source import written_beside


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
        raise click.UsageError(f"{name} {value}: there is no folder {path.parent}", context)
    if not os.access(path if _is_special(path) else path.parent, os.W_OK):
        raise click.UsageError(f"{name} {value}: it cannot be written", context)
    return value


def write_report(file: str, text: str) -> None:
    """Write the whole file. Raises `CannotStart`."""
    path = Path(file)
    try:
        if _is_special(path):
            # Write to a pipe or a device; never replace it.
            with path.open("w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
            return
        path = path.resolve()
        mode = path.stat().st_mode & 0o7777 if path.exists() else None
        with written_beside(path, text.encode("utf-8", "backslashreplace"), 0o666 if mode is None else 0o600) as new:
            if mode is not None:
                new.chmod(mode)
            new.replace(path)
    except OSError as error:
        raise CannotStart(f"{file} cannot be written: {error.strerror or error}") from None


def _is_special(path: Path) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113
