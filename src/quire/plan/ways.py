"""How people name the steps of callees: by the way to them, `3 › 1`, which may be typed as `3>1`."""

from __future__ import annotations

import re
from collections.abc import Collection

JOINT = " › "
_TYPED = re.compile(r"\s*[›>]\s*")


def typed_way(text: str) -> str:
    """The way that somebody typed, as it is shown. A label or a path is that itself."""
    return _TYPED.sub(JOINT, text.strip()) if ">" in text or "›" in text else text


def last_label(way: str) -> str:
    """The label of the step itself, in its own document."""
    return way.rpartition(JOINT)[2]


def first_label(way: str) -> str:
    """The label of the step of the run's own document."""
    return way.partition(JOINT)[0]


def short_way(way: str) -> str:
    """The way for a message: of a long one the first and the last steps."""
    labels = way.split(JOINT)
    return way if len(labels) <= 8 else JOINT.join([*labels[:3], "…", *labels[-3:]])


def shell_way(way: str) -> str:
    """The way as one types it into a shell, within quotes."""
    return "'" + way.replace(JOINT, ">") + "'" if JOINT in way or " " in way else way


def is_named(way: str, names: Collection[str]) -> bool:
    """Whether one of the names means the step: by the way to it, or by its label in its own document."""
    return way in names or last_label(way) in names
