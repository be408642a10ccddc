"""Every kind of finding that `quire check` knows, whichever room reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire import formats

if TYPE_CHECKING:
    from quire.diagnostics import Code


def all_codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    from quire.analysis.lock.codes import CODES
    from quire.analysis.rules import rule_codes

    return tuple(sorted((*formats.all_codes(), *rule_codes(), *CODES), key=lambda code: code.id))
