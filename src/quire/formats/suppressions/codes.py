"""AL: findings about the comments that hide findings."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

_STEP = '- transform: {value: "ctx.report.note"}'
_RIGHT = f'# quire: allow PL209 because "every report of ours has a note"\n{_STEP}'

FORM = _error(
    "AL101",
    "allow-without-reason",
    "A comment that hides findings is not complete: it has no code, no reason, or another form.",
    "A reviewer has to see why a finding does not matter here, and the lock lists the reason. The reason stands in\n"
    "double quotes after `because`. In a playbook `in step 3` may stand before `because`.",
    f"# quire: allow PL209\n{_STEP}",
    _RIGHT,
)
UNKNOWN = _error(
    "AL102",
    "allow-unknown-code",
    "A comment hides findings of a code that does not exist.",
    "It hides nothing, and looks as if it did. `quire check --explain CODE` prints the page of a code.",
    f'# quire: allow PL290 because "every report of ours has a note"\n{_STEP}',
    _RIGHT,
)
UNUSED = _error(
    "AL103",
    "allow-hides-nothing",
    "A comment hides nothing: no finding of its code begins in the part of the document that it covers.",
    "The cause was removed, the comment stands in the wrong place, or a comment before it hides the finding already.\n"
    "Left there, it would hide the next finding of that code, which no reviewer has seen. In YAML a comment behind a\n"
    "line covers that line, a comment on a line of its own covers the next line and all lines below that are indented\n"
    "deeper, and a comment above everything else covers the file. In the XML of a directive it covers its line or the\n"
    "next element. Before the title of a playbook and before the fence of a directive it covers the file. It is not\n"
    "reported if the document has an error.",
    '# quire: allow PL209 because "every report of ours has a note"\n- transform: {value: "ctx.count"}',
    '- transform: {value: "ctx.count"}',
)
OF_ERROR = _error(
    "AL104",
    "allow-of-error",
    "A comment is meant to hide an error.",
    "An error stops a document from running, so a document that hides it would only look right. Warnings, lints and\n"
    "notes can be hidden.",
    '# quire: allow PL009 because "the step is written later"\n- transfrom: {value: "1"}',
    '- transform: {value: "1"}',
)
IS_TEXT = make(
    Severity.WARNING,
    "AL105",
    "allow-in-text",
    "A comment that should hide findings stands in a text, so it hides nothing and is a part of that text.",
    "Formats skip comments in some places only. The steps of a playbook, the body of a directive, its `<permissions>`\n"
    "and the prompts of a pipeline are sent to a model as they are.",
    '## STEP 2: Publish\n\n<!-- quire: allow PB201 because "the braces are for the reader" -->\nWrite {{name}}.',
    '<!-- quire: allow PB201 in step 2 because "the braces are for the reader" -->\n# Publish\n\n'
    "## STEP 2: Publish\n\nWrite {{name}}.",
)
