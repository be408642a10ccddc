"""Every kind of finding about a pipeline, with the page that `quire check --explain` prints.

PL0xx are errors (PL030 to PL039 of inline definitions alone, from PL040 on about schemas), PL1xx warnings (from PL140
on about schemas), PL2xx lints of `check`, PL3xx notes; TY1xx are about types. Errors in the YAML itself are YM0xx,
errors in an expression EX0xx. Ids are never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code, codes_in
from quire.expr.errors import CODES as EXPRESSION_CODES
from quire.formats.pipeline.codes import errors, warnings
from quire.formats.yaml.codes import codes as yaml_codes


def codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    codes = [*codes_in(errors, warnings), *yaml_codes(), *EXPRESSION_CODES]
    return tuple(sorted(codes, key=lambda code: code.id))
