"""Names of the steps of callees for people: the labels on the way to the step, `3 › 1`, which may be typed as `3>1`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quire.errors import CannotStart
from quire.patterns import late_pattern

JOINT = " › "
_TYPED = late_pattern(r"\s*[›>]\s*")


def typed_way(text: str) -> str:
    """Normalize a way typed by the user to the form in which ways are shown.

    A plain label or path is returned unchanged.
    """
    return _TYPED.sub(JOINT, text.strip()) if ">" in text or "›" in text else text


def last_label(way: str) -> str:
    """Return the label of the step itself, within its own document."""
    return way.rpartition(JOINT)[2]


def first_label(way: str) -> str:
    """Return the label of the first step of the way, in the run's own document."""
    return way.partition(JOINT)[0]


def short_way(way: str) -> str:
    """Shorten a way for a message: a long one keeps only its first and last steps."""
    labels = way.split(JOINT)
    return way if len(labels) <= 8 else JOINT.join([*labels[:3], "…", *labels[-3:]])


def shell_way(way: str) -> str:
    """Return the way as the user types it in a shell, with quotes if needed."""
    return "'" + way.replace(JOINT, ">") + "'" if JOINT in way or " " in way else way


def is_named(way: str, names: Collection[str]) -> bool:
    """Tell whether one of the names refers to the step, by the way to it or by its label in its own document."""
    return way in names or last_label(way) in names


def path_named(named: str, labels: Mapping[str, str]) -> str | None:
    """Return the path of the step with that label, or that path itself; None if there is no such step. `labels` are by
    path. Raises `CannotStart` if several steps have the label."""
    wanted = named.strip()
    found = [path for path, label in labels.items() if label.lower() == wanted.lower()]
    if len(found) > 1:
        raise CannotStart(f"several steps are called {wanted}: say which by its place ({', '.join(found)})")
    return found[0] if found else wanted if wanted in labels else None
