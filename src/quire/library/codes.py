"""Every kind of finding that `quire check` and editors know, whichever room reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire import formats

if TYPE_CHECKING:
    from quire.diagnostics import Code


def all_codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    from quire.analysis.lock.codes import CODES
    from quire.analysis.rules import rule_codes
    from quire.workspace.codes import CODES as SETTINGS

    return tuple(sorted((*formats.all_codes(), *rule_codes(), *CODES, *SETTINGS), key=lambda code: code.id))
