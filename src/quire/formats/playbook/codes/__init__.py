"""Every kind of finding about a playbook, with the page that `quire check --explain` prints.

PB0xx are errors, PB1xx the format's own warnings, PB2xx lints of `check`, PB3xx notes. Ids are never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code, codes_in
from quire.formats.playbook.codes import lints, reader


def codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    return tuple(sorted(codes_in(reader, lints), key=lambda code: code.id))
