"""References to the environment in settings: `${VAR}` and `${VAR:-default}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.patterns import late_pattern

_REFERENCE = late_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def variables_in(texts: Iterable[str]) -> dict[str, str | None]:
    """Return the variables that texts refer to, with their defaults; None if there is no default."""
    found: dict[str, str | None] = {}
    for text in texts:
        for reference in _REFERENCE.finditer(text):
            name, default = reference[1], reference[2]
            # A variable that one place needs without a default is needed, whatever default another place gives.
            found[name] = default if found.get(name, "") is not None else None
    return found


def filled_in(text: str, environ: Mapping[str, str]) -> str:
    """Return a text with the values of the environment; a missing variable without a default becomes empty."""
    return _REFERENCE.sub(lambda found: environ.get(found[1]) or found[2] or "", text)


def without_references(text: str) -> str:
    return _REFERENCE.sub("", text)
