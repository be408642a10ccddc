"""PL3xx: how the reader treated something unusual. Notes never make a plain check fail."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_note = partial(make, Severity.NOTE)

NOT_PORTABLE = _note(
    "PL301",
    "not-portable",
    "The document uses something that only Quire has.",
    "Other implementations of the format refuse the document, or read it differently. `quire check --portable` lists\n"
    "every such place, and fails if there is one. Without the option nothing is said.",
    'pipeline: p\ndialect: quire\nsteps:\n- transform: {value: "upper(ctx.name)"}',
    "pipeline: p\nsteps:\n- transform: {value: ctx.name}",
    portable=False,
)
