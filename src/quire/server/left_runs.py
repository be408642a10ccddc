"""Runs that a server brought to rest because it stopped, noted for the next server, which continues them.

A run that a user paused is not among them. A run that another process has continued meanwhile has a higher epoch.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.errors import CannotStart, Refused
from quire.server.token import file_of
from quire.trust.private_files import write_new

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

SUFFIX = ".resting.json"


def note_resting(settings: Settings, runs: Mapping[str, int]) -> None:
    """Add runs with their epochs to the note. A note that cannot be written leaves the runs paused."""
    if not runs:
        return
    whole = {**take_resting(settings), **runs}
    with contextlib.suppress(OSError, CannotStart, Refused):
        write_new(file_of(settings, SUFFIX), json.dumps(whole))


def take_resting(settings: Settings) -> dict[str, int]:
    """Return the noted runs, and remove the note, so that one server continues them."""
    path = file_of(settings, SUFFIX)
    try:
        noted = json.loads(path.read_bytes()) if path.exists() else {}
        path.unlink(missing_ok=True)
    except (OSError, ValueError):
        return {}
    runs = noted.items() if isinstance(noted, dict) else ()
    return {run: epoch for run, epoch in runs if isinstance(epoch, int)}
