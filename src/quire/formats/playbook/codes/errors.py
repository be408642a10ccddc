"""PB0xx: errors that stop a playbook from running."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

EMPTY = _error(
    "PB001",
    "empty-document",
    "The document holds nothing but white space.",
    "A playbook needs at least a title and one step.",
    "(an empty file)",
    "# Greeting\n\n## STEP 1: Greet\n\nSay hello to {{name:string:the world}}.",
)
TOO_LARGE = _error(
    "PB002",
    "document-too-large",
    "The document is larger than 200,000 bytes, counted as they are stored.",
    "The limit is the format's. Long reference texts belong in files of their own: `@prompt(file:…)` fetches\n"
    "one when its step runs.",
    "## STEP 1: Review\n\n(300 KB of guidelines, pasted)",
    "## STEP 1: Review\n\n@prompt(file:guidelines.md)\n\nApply the guidelines above.",
)
NO_TITLE = _error(
    "PB003",
    "no-title",
    "A level-1 heading (`# Title`) is missing before the first `##` section.",
    "The title names the playbook in every list, and marks where the document begins. A `#` heading that\n"
    "comes after a `##` section is part of that section.",
    "## STEP 1: Draft\n\nWrite a draft.\n\n# My playbook",
    "# My playbook\n\n## STEP 1: Draft\n\nWrite a draft.",
)
NO_STEPS = _error(
    "PB004",
    "no-steps",
    "No heading has the form `## STEP N: Title`.",
    "Steps are what runs. The word is upper case, the number is in ASCII digits, and the colon is followed by\n"
    "a space and a title.",
    "# Plan\n\n## Step 1 - Draft\n\nWrite a draft.",
    "# Plan\n\n## STEP 1: Draft\n\nWrite a draft.",
)
DUPLICATE_INPUT = _error(
    "PB005",
    "duplicate-input",
    "Two inputs have the same name.",
    "`{{name}}` could mean either. Several `## INPUTS` sections are read as one, so the twin may be far away.",
    "- `topic` (string): What to write about\n- `topic` (text): Background",
    "- `topic` (string): What to write about\n- `background` (text): Background",
)
BAD_DEFAULT = _error(
    "PB006",
    "elicit-default",
    "The default of an `@elicit` is not one of the answers it accepts.",
    "The default is the answer of an unattended run; it would be refused every time. A select takes\n"
    "one of its options, a confirm `yes` or `no`.",
    '@elicit(select, "Severity?", "high", "low", default:"medium")',
    '@elicit(select, "Severity?", "high", "low", default:"low")',
)
CIRCLE = _error(
    "PB007",
    "callee-circle",
    "What the playbook calls can reach itself.",
    "Playbooks and pipelines call each other and never themselves, however long the way is, so that every run comes\n"
    "to an end. The run is refused before it begins, also where a branch might never be taken.",
    "# Letter\n\n## STEP 1: Price\n\n@tool(quire, letter)",
    '# Letter\n\n## STEP 1: Price\n\n@tool(quire, room_price, {"nights": 2})',
)
