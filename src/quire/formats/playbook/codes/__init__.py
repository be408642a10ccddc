"""Every kind of finding about a playbook, with the page that `quire check --explain` prints.

PB0xx are errors, PB1xx the format's own warnings, PB2xx lints of `check`, PB3xx notes. Ids are never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code
from quire.formats.playbook.codes import errors, lints, notes, warnings


def codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    found = [
        value for room in (errors, warnings, lints, notes) for value in vars(room).values() if isinstance(value, Code)
    ]
    return tuple(sorted(found, key=lambda code: code.id))
