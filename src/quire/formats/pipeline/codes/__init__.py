"""Every kind of finding about a pipeline, with the page that `quire check --explain` prints.

PL0xx are errors (from PL040 on about schemas), PL1xx warnings. What is wrong with the YAML itself is YM0xx. Ids are
never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code
from quire.formats.pipeline.codes import schemas
from quire.formats.yaml.codes import codes as yaml_codes


def codes() -> tuple[Code, ...]:
    """All of them, in the order of their ids."""
    found = [value for room in (schemas,) for value in vars(room).values() if isinstance(value, Code)]
    return tuple(sorted([*found, *yaml_codes()], key=lambda code: code.id))
