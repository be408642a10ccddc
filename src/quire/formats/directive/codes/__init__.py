"""Every kind of finding about a directive or a knowledge file, with the page that `quire check --explain` prints.

DR0xx are errors (from DR020 on those that only `check` and a run find), DR1xx warnings, DR2xx lints of `check`, DR3xx
notes. Findings about knowledge files are KN, with the same hundreds. Ids are never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code, codes_in
from quire.formats.directive.codes import errors, knowledge, lints, notes, warnings


def knowledge_codes() -> tuple[Code, ...]:
    return tuple(codes_in(knowledge))


def codes() -> tuple[Code, ...]:
    """Return the codes of directives, in the order of their ids."""
    return tuple(sorted(codes_in(errors, warnings, lints, notes), key=lambda code: code.id))
