"""PB1xx: warnings of the format itself. The document runs, but a part of it is probably not read as intended.

PB3xx: how the reader treated something unusual. Notes never make a check fail.

PB0xx: errors that stop a playbook from running.
"""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_warning = partial(make, Severity.WARNING)

STEP_NUMBER = _warning(
    "PB101",
    "step-number",
    "A step's number is not one more than that of the step before.",
    "All steps run, in the order in which they stand; but people and `__elicit_step_N` go by the number.",
    "## STEP 1: Draft\n…\n## STEP 3: Review",
    "## STEP 1: Draft\n…\n## STEP 2: Review",
)
MALFORMED_INPUT = _warning(
    "PB102",
    "malformed-input",
    "A list item of `## INPUTS` does not declare an input.",
    "The line is skipped, so nothing asks for that input and `{{name}}` stays in the prompt as it is. The\n"
    "form is a dash, the name in backticks, the type in parentheses, and then perhaps a colon and a\n"
    "description. Names begin with a letter, followed by letters, digits and underscores.",
    "* topic (string) - What to write about",
    "- `topic` (string): What to write about",
    stops=True,
)
ARTIFACT_TYPE = _warning(
    "PB103",
    "artifact-type",
    "`type:` of `## ARTIFACTS` names a type that the format does not have.",
    "Known are markdown, json, mermaid, chartjs, html_css, javascript and typescript; or a `{{variable}}`\n"
    "that holds one of them when the run ends.",
    "## ARTIFACTS\n\ntype: pdf",
    "## ARTIFACTS\n\ntype: markdown",
)
UNDECLARED_VARIABLE = _warning(
    "PB104",
    "undeclared-variable",
    "A condition reads a name that is neither an input nor captured by an earlier `@output`.",
    "It counts as empty text, so `==` never holds and `!=` always does. The step's own `@output` may be read,\n"
    "and `__elicit_step_N` where step N asks something.",
    '- `depth` (enum: quick, deep): How deep\n…\n```if dept == "deep"```',
    '- `depth` (enum: quick, deep): How deep\n…\n```if depth == "deep"```',
)
ELICIT_TYPE = _warning(
    "PB105",
    "elicit-type",
    "The first argument of `@elicit` is not input, confirm or select.",
    "The directive is ignored: no question is asked.",
    '@elicit(slider, "How much?")',
    '@elicit(input, "How much?")',
    stops=True,
)
DIRECTIVE = _warning(
    "PB106",
    "near-miss-directive",
    "A line looks like a directive but is not written like one.",
    "It stays in the text of the step and is sent to the model. Directives stand on a line of their own;\n"
    "names come right after the parenthesis; texts are in double quotes and separated by commas; `extract:`\n"
    "and `default:` are followed by their quote at once. Inside a fenced code block nothing is a directive,\n"
    "so examples are safe there.",
    '@output( summary )\n@elicit(input "Name?")\n@tool(my server, search)',
    '@output(summary)\n@elicit(input, "Name?")\n@tool("my server", search)',
    stops=True,
)
MARKER = _warning(
    "PB107",
    "near-miss-marker",
    "A line looks like a branch marker but is not written like one.",
    "It stays in the text of the step, and no branch begins or ends there. A marker is one line: three\n"
    "backticks, `if` or `elif` with a condition, `else`, or `endif`, and three backticks again, with no\n"
    "spaces inside the backticks around the word. The value of a condition is in double quotes.",
    "``` if mode == 'deep' ```\n…\n``` endif ```",
    '```if mode == "deep"```\n…\n```endif```',
    stops=True,
)
PROMPT_SCHEME = _warning(
    "PB108",
    "prompt-scheme",
    "`@prompt` refers to a kind of place that Quire does not know.",
    "The reference is ignored and the step runs on its own text. Known are `library:id`, `file:path`\n"
    "(relative to the playbook), `mcp:server/prompt` and a single `{{variable}}`.",
    "@prompt(https://example.com/criteria)",
    "@prompt(file:prompts/criteria.md)",
)
NESTED_IF = _warning(
    "PB109",
    "nested-if",
    "An `if` stands inside another `if`.",
    "Branches do not nest. The inner block, from its `if` to its `endif`, is kept as text of the sub-step it\n"
    "stands in. Decide in two steps, or capture the decision with `@output` and branch on it once.",
    '```if mode == "deep"```\n### STEP 2a: Deep\n```if lang == "go"```\n…\n```endif```\n```endif```',
    "## STEP 2: Depth\n"
    '```if mode == "deep"```\n'
    "…\n"
    "```endif```\n"
    "\n"
    "## STEP 3: Language\n"
    '```if lang == "go"```\n'
    "…\n"
    "```endif```",
)
OPERATOR = _warning(
    "PB110",
    "condition-operator",
    "A condition uses an operator other than `==` and `!=`.",
    "The line stays in the text and no branch begins. Comparisons are of exact text. Let a step decide what\n"
    "is to be compared: ask for one of a few words, capture it as an enum, and branch on the word.",
    '```if score > "3"```',
    '@output(verdict: enum, "good", "poor")\n…\n```if verdict == "good"```',
    stops=True,
)
TOOL_ARGUMENTS = _warning(
    "PB111",
    "tool-arguments",
    "`@tool` has only one argument.",
    "It needs the connection and the tool; the directive is ignored.",
    "@tool(search)",
    '@tool(web, search, {"query": "{{topic}}"})',
)
CONFIRM_OPTION = _warning(
    "PB112",
    "confirm-option",
    "`@elicit(confirm, …)` has options.",
    "A confirm is answered with yes or no; the options are not shown. A select has options.",
    '@elicit(confirm, "Proceed?", "Sure", "Never")',
    '@elicit(select, "Proceed?", "Sure", "Never")',
)
UNTERMINATED_IF = _warning(
    "PB113",
    "unterminated-if",
    "An `if` has no `endif`.",
    "It is closed where the step ends, at the next `##` heading, so nothing is lost; but text that was meant\n"
    "to come after the `if` belongs to its last branch.",
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n## STEP 3: Next',
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```\n\n## STEP 3: Next',
    stops=True,
)
TOOL_COMPANY = _warning(
    "PB114",
    "tool-company",
    "A step has a `@tool` and also an `@elicit` or a `@prompt`.",
    "A tool step calls no model and asks no question: the tool wins and the others are ignored. Ask in a step\nbefore.",
    '## STEP 1: Search\n\n@elicit(input, "For what?")\n@tool(web, search, {"query": "{{__elicit_step_1}}"})',
    "## STEP 1: Ask\n"
    "\n"
    '@elicit(input, "For what?")\n'
    "@output(query)\n"
    "\n"
    "## STEP 2: Search\n"
    "\n"
    '@tool(web, search, {"query": "{{query}}"})',
)
STRAY_MARKER = _warning(
    "PB115",
    "stray-marker",
    "An `elif`, `else` or `endif` without `if`.",
    "The line stays in the text of the step. Often the `if` before it exists but is not written as a marker.",
    "### STEP 2a: Deep\n\nDig.\n\n```endif```",
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```',
    stops=True,
)
TEXT_AFTER_ENDIF = _warning(
    "PB116",
    "text-after-endif",
    "Text of a step stands after its `endif`.",
    "A step's own text is one prompt, and it is sent before the sub-steps of the branch, also if it comes after them.\n"
    "Text that is to be sent after them belongs in a step of its own.",
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```\n\nNow sum it all up.',
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```\n\n## STEP 3: Sum up\n\nNow sum it all up.',
)
SECOND_CHAIN = _warning(
    "PB117",
    "second-chain",
    "A step has a second `if` after an `endif`.",
    "At most one branch runs in a step: the second chain is read as more branches of the first, so it is decided only\n"
    "where no branch before it was taken. Give the second decision a step of its own.",
    '```if a == "x"```\n…\n```endif```\n\n```if b == "y"```\n…\n```endif```',
    '```if a == "x"```\n…\n```endif```\n\n## STEP 3: Then\n\n```if b == "y"```\n…\n```endif```',
)
AFTER_ELSE = _warning(
    "PB118",
    "arm-after-else",
    "An `elif`, an `else` or another `if` comes after the `else` of a step.",
    "The `else` takes every remaining run, so the sub-steps of the later branch never run.",
    '```if a == "x"```\n…\n```else```\n…\n```elif a == "y"```\n…\n```endif```',
    '```if a == "x"```\n…\n```elif a == "y"```\n…\n```else```\n…\n```endif```',
    stops=True,
)
ARTIFACT_SOURCE = _warning(
    "PB120",
    "artifact-source",
    "`from:` of `## ARTIFACTS` names neither an output nor a step.",
    "It takes the name of an `@output`, or the number of a step (`3`, `3a`). The artifact is the result of the last\n"
    "step instead.",
    "@output(summary)\n…\n## ARTIFACTS\n\ntype: markdown\nfrom: sumary",
    "@output(summary)\n…\n## ARTIFACTS\n\ntype: markdown\nfrom: summary",
)
UNKNOWN_CONTEXT = _warning(
    "PB121",
    "unknown-context",
    "`@context` names a result that no step before this one has.",
    "It takes names of `@output`s and numbers of steps (`2`, `3a`) that come before, or `none` alone. For a name that\n"
    "means nothing the model is shown nothing.",
    "## STEP 1: Draft\n…\n@output(draft)\n\n## STEP 2: Judge\n\n@context(darft)\n\nJudge the draft.",
    "## STEP 1: Draft\n…\n@output(draft)\n\n## STEP 2: Judge\n\n@context(draft)\n\nJudge the draft.",
)
STEP_HEADING = _warning(
    "PB119",
    "near-miss-step",
    "A `##` heading looks like that of a step but is not written like one.",
    "It is read as a section that the format does not know, and is skipped with all its text. The word is upper case,\n"
    "the number is in ASCII digits, and the colon is followed by a space and a title.",
    "## Step 2: Review\n\n## STEP two: Review",
    "## STEP 2: Review",
    stops=True,
)


_note = partial(make, Severity.NOTE)

FENCED = _note(
    "PB301",
    "fenced-content",
    "A fenced code block holds lines that would mean something outside of it.",
    "Headings, directives, markers and input lines inside a fence are content, so a playbook can show\n"
    "Markdown. The note covers the case that a fence was closed too late.",
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
    "Text stands between a branch marker and the first sub-step of that branch.",
    "It becomes a sub-step of its own, without a title and with the first letter that is free in the step.",
    '```if mode == "deep"```\n\nDig.\n\n```endif```',
    '```if mode == "deep"```\n\n### STEP 2a: Deep\n\nDig.\n\n```endif```',
)


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
    "A called document calls the playbook, or itself, again.",
    "Playbooks and pipelines call each other and never themselves, however long the way is, so that every run comes\n"
    "to an end. The run is refused before it begins, also where a branch might never be taken.",
    "# Letter\n\n## STEP 1: Price\n\n@tool(quire, letter)",
    '# Letter\n\n## STEP 1: Price\n\n@tool(quire, room_price, {"nights": 2})',
)
