"""PB3xx: how the reader treated something unusual. Notes never make a check fail."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_note = partial(make, Severity.NOTE)

FENCED = _note(
    "PB301",
    "fenced-content",
    "A fenced code block holds lines that would mean something outside of it.",
    "Headings, directives, markers and input lines inside a fence are content, so a playbook can show\n"
    "Markdown. The note is there for the case that a fence was closed too late.",
    "## STEP 1: Show\n\n```\nAn example:\n\n## STEP 2: Review",
    "## STEP 1: Show\n\n```\nAn example:\n```\n\n## STEP 2: Review",
)
UNCLOSED_FENCE = _note(
    "PB302",
    "unclosed-fence",
    "A code fence is opened and never closed.",
    "It is taken as a line of text, so that the rest of the document is not swallowed by it. A closing fence\n"
    "has the same character, is at least as long, and stands alone on its line.",
    "````markdown\nAn example.\n```",
    "````markdown\nAn example.\n````",
)
BEFORE_TITLE = _note(
    "PB303",
    "text-before-title",
    "There is text before the title.",
    "It is not part of the playbook: neither the description nor any step has it. Front matter is not read.",
    "---\nauthor: Kim\n---\n# Plan",
    "# Plan\n\nBy Kim.",
)
FENCED_TITLE = _note(
    "PB304",
    "fenced-title",
    "The first level-1 heading, which is the title, stands inside a code fence.",
    "A document that was pasted together with its fence is read all the same: that fence counts as text.",
    "```markdown\n# Plan\n\n## STEP 1: Draft\n…\n```",
    "# Plan\n\n## STEP 1: Draft\n…",
)
REPLACED = _note(
    "PB305",
    "replaced",
    "A step has two directives of one kind, or the document two system prompts.",
    "The last one counts, whole; the earlier one is dropped.",
    "@output(draft)\n@output(summary)",
    "@output(summary)",
)
QUIRE_ONLY = _note(
    "PB307",
    "quire-only",
    "A line means more in Quire than the format says.",
    '`@context`, `@model`, `from:` in `## ARTIFACTS`, `\\n` and `\\"` in the texts of `@elicit`, and directives that\n'
    "are indented are Quire's own. `quire run` says so too, for a document that is not named `*.playbook.md`.\n"
    "Other implementations send such a directive to the model as text, skip the line, or show the characters.",
    "## STEP 2: Judge\n\n@context(draft)\n\nJudge the draft.",
    "## STEP 2: Judge\n\nJudge the draft. Do not look at anything else.",
    portable=False,
)
LEAD_TEXT = _note(
    "PB306",
    "arm-lead-text",
    "Text stands between a branch marker and the first sub-step of that arm.",
    "It becomes a sub-step of its own, without a title and with the first letter that is free in the step.",
    '```if mode == "deep"```\n\nDig.\n\n```endif```',
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```',
)
