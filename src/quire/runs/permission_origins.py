"""Find where the permissions of a directive are written: the file and line for a refusal, or for `can`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.library.spaces import Spaces
from quire.source import Source
from quire.trust.sign_file import typed_path

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle, Granted
    from quire.runs.view import RunView
    from quire.workspace.settings import Settings


def permissions_of(view: RunView, settings: Settings) -> str:
    """Return `FILE:LINE` of the first permission of the thread of a run; empty for other formats."""
    if view.thread is None or view.bundle is None or not view.thread.composed.capabilities:
        return ""
    return origin_of(view.thread.composed.capabilities[0], view.bundle, settings)


def origin_of(granted: Granted, bundle: Bundle, settings: Settings) -> str:
    """Return `FILE:LINE` where a capability is granted, according to the texts of the bundle."""
    text = bundle.directives.get(granted.origin_id, "")
    line = Source.of(text, "").position(granted.span.start).line
    return f"{file_of(granted.origin_id, settings)}:{line}"


def file_of(item_id: str, settings: Settings) -> str:
    """Return the file of a directive as a person would type it, or its id if the file is gone."""
    try:
        item = Spaces(settings).find("directive", item_id)
    except QuireError:
        item = None
    return typed_path(item.path) if item else item_id
