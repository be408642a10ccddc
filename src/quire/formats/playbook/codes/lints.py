"""PB2xx: advice that `check` adds. The document is valid, but probably not as intended."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_lint = partial(make, Severity.LINT)

UNRESOLVED = _lint(
    "PB201",
    "unresolved-placeholder",
    "A `{{name}}` that no input, no `@output` and no inline default ever sets.",
    "It is sent to the model literally, braces included. Write `{{name:string:default}}` where a default will do. It\n"
    "is a warning if a name that exists is near.",
    "- `summary` (text): The text\n…\nShorten {{sumary}}.",
    "- `summary` (text): The text\n…\nShorten {{summary}}.",
)
READ_EARLY = _lint(
    "PB202",
    "read-before-set",
    "A `{{name}}` is read before the step that captures it.",
    "Steps run from top to bottom, so it has no value yet and the placeholder is sent to the model literally.",
    "## STEP 1: Use\n\nShorten {{draft}}.\n\n## STEP 2: Make\n\nWrite a draft.\n\n@output(draft)",
    "## STEP 1: Make\n\nWrite a draft.\n\n@output(draft)\n\n## STEP 2: Use\n\nShorten {{draft}}.",
)
UNUSED_INPUT = _lint(
    "PB203",
    "unused-input",
    "An input is declared and never read.",
    "The user is asked for something that makes no difference.",
    "- `tone` (string): Tone of voice\n…\nWrite about {{topic}}.",
    "- `tone` (string): Tone of voice\n…\nWrite about {{topic}} in a {{tone}} tone.",
)
UNUSED_OUTPUT = _lint(
    "PB204",
    "unused-output",
    "An `@output` is never read: no placeholder or condition names it, and no later step asks a model, which\n"
    "would see the result as context. The last step is left out: its output is a result.",
    "A capture is for `{{name}}`, for conditions and for tools.",
    "Write a draft.\n\n@output(draft)\n\n## STEP 2: Save\n\n"
    '@tool(quire, file__write, {"path": "a.md", "content": "…"})',
    "Write a draft.\n\n@output(draft)\n\n## STEP 2: Save\n\n"
    '@tool(quire, file__write, {"path": "a.md", "content": "{{draft}}"})',
)
SHADOWS_INPUT = _lint(
    "PB205",
    "output-shadows-input",
    "An `@output` has the name of an input.",
    "`{{name}}` keeps meaning the input, so the captured value can never be read.",
    "- `draft` (text): First version\n…\n@output(draft)",
    "- `draft` (text): First version\n…\n@output(revised)",
)
IMPOSSIBLE = _lint(
    "PB206",
    "impossible-condition",
    "A condition compares with a value that the variable can never have.",
    "The options of the enum, or of the question, are all possible values; text is compared exactly,\ncase and all.",
    '- `depth` (enum: quick, thorough): Depth\n…\n```if depth == "Thorough"```',
    '- `depth` (enum: quick, thorough): Depth\n…\n```if depth == "thorough"```',
)
NO_QUESTION = _lint(
    "PB207",
    "elicit-without-prompt",
    "An `@elicit` asks without saying what.",
    "The person who is to answer sees an empty question.",
    "@elicit(input)",
    '@elicit(input, "Which region?")',
)
FEW_OPTIONS = _lint(
    "PB208",
    "few-options",
    "A select has one option or none, or an input question has options.",
    "Nothing can be chosen. Each option is a quoted string of its own; only a select has options.",
    '@elicit(select, "Which?", "React, Vue, Svelte")',
    '@elicit(select, "Which?", "React", "Vue", "Svelte")',
)
DUPLICATE_OPTIONS = _lint(
    "PB209",
    "duplicate-options",
    "An option is listed twice.",
    "Both mean the same answer, so one of them is a slip.",
    "- `tone` (enum: formal, casual, formal): Tone",
    "- `tone` (enum: formal, casual, academic): Tone",
)
EMPTY_STEP = _lint(
    "PB210",
    "empty-step",
    "A step has no text, no directive that does something, and no branches.",
    "It completes at once with an empty output.",
    "## STEP 2: Review\n\n## STEP 3: Publish",
    "## STEP 2: Review\n\nReview the draft.\n\n## STEP 3: Publish",
)
NO_OPTIONS = _lint(
    "PB211",
    "enum-without-options",
    "An enum has no options.",
    "No value can ever be right.",
    "- `tone` (enum): Tone of voice",
    "- `tone` (enum: formal, casual): Tone of voice",
)
SPACED = _lint(
    "PB212",
    "spaced-placeholder",
    "Braces with something in them that is nearly a placeholder.",
    "Placeholders have no spaces and no hyphens: `{{name}}`, `{{name:type}}`, `{{name:type:default}}`.\n"
    "Everything else is sent to the model literally.",
    "Write about {{ topic }}.",
    "Write about {{topic}}.",
)
OUTPUT_NAME = _lint(
    "PB213",
    "output-name",
    "The name of an `@output` begins with a digit or an underscore.",
    "Other readers of the format refuse such names, and `__elicit_step_N` belongs to the engine.",
    "@output(2nd_draft)",
    "@output(second_draft)",
)
HEADING = _lint(
    "PB214",
    "near-miss-heading",
    "A heading looks like a section of the format but is not written like one.",
    "Sections that the format does not know are skipped, text and all. The headings are `## SYSTEM`, `##\n"
    "INPUTS`, `## STEP N: Title` and `## ARTIFACTS`, at the start of a line, with a space after the hashes.",
    "## SYSTEM:\n\n### Step 2: Review",
    "## SYSTEM\n\n## STEP 2: Review",
)
UNTYPED_COMPARISON = _lint(
    "PB215",
    "untyped-comparison",
    "A condition compares an `@output` that has no type.",
    "An untyped capture keeps the reply exactly, line breaks and all, so `bug` and `bug.` are different. An\n"
    "enum is trimmed and checked against its options.",
    '@output(kind)\n…\n```if kind == "bug"```',
    '@output(kind: enum, "bug", "feature")\n…\n```if kind == "bug"```',
)
OPTIONS_WITHOUT_ENUM = _lint(
    "PB216",
    "options-without-enum",
    "An `@output` has options but not the type enum.",
    "Only an enum is checked against options.",
    '@output(kind, "bug", "feature")',
    '@output(kind: enum, "bug", "feature")',
)
BACKSLASH_QUOTE = _lint(
    "PB217",
    "backslash-quote",
    "A quoted text of `@elicit` ends with a backslash.",
    'The quote ends the text, and the backslash is part of it. Quire reads `\\"` as a quote only where the line makes\n'
    "no sense otherwise.",
    '@elicit(select, "Which word?", "so-called \\"", "done")',
    '@elicit(select, "Which word?", "so-called \\"done\\"", "done")',
)
TOOL_JSON = _lint(
    "PB218",
    "tool-json",
    "The third argument of `@tool` is not a JSON object, even with a value in place of each placeholder.",
    "The tool could never be called, so the run could not start. Keys and texts are in double quotes.",
    "@tool(web, search, {query: '{{topic}}'})",
    '@tool(web, search, {"query": "{{topic}}"})',
)
SUBSTEP_LABEL = _lint(
    "PB219",
    "substep-label",
    "The label of a sub-step does not begin with the number of its step, or is used twice.",
    "Answers, break points and lists go by the label.",
    "## STEP 2: Adapt\n…\n### STEP 3a: Blog",
    "## STEP 2: Adapt\n…\n### STEP 2a: Blog",
)
CHAIN = _lint(
    "PB220",
    "joined-chains",
    "A step has a second `if`, or a branch after its `else`. Retired: the warnings PB117 and PB118 say it.",
    "At most one branch runs in a step: a second chain is read as more branches of the first, and nothing after an\n"
    "`else` is ever reached. Give the second decision a step of its own.",
    '```if a == "x"```\n…\n```endif```\n\n```if b == "y"```\n…\n```endif```',
    '```if a == "x"```\n…\n```endif```\n\n## STEP 3: Then\n\n```if b == "y"```\n…\n```endif```',
)
SUBSTEP_OUTSIDE = _lint(
    "PB221",
    "substep-outside-branch",
    "A `### STEP Na:` heading stands outside of a branch.",
    "Only the branches of an `if` have sub-steps; here the heading is a line of the step's text.",
    "## STEP 2: Adapt\n\n### STEP 2a: Blog\n\nWrite a post.",
    "## STEP 2: Blog\n\nWrite a post.",
)
DEFAULT_TYPE = _lint(
    "PB222",
    "default-type",
    "The default of an input does not fit its type.",
    "A run that leaves the input blank would start with a wrong value.",
    "- `count` (number: five): How many",
    "- `count` (number: 5): How many",
)
PROMPT_FILE = _lint(
    "PB223",
    "prompt-file",
    "`@prompt(file:…)` leaves the folder of the playbook, or names a file that does not exist.",
    "Absolute paths and `..` are refused, and so is a missing file: the run could not start.",
    "@prompt(file:../shared/criteria.md)",
    "@prompt(file:prompts/criteria.md)",
)
ARTIFACT_LINE = _lint(
    "PB224",
    "artifact-line",
    "`## ARTIFACTS` has no line of the form `type: NAME`.",
    "The section then declares nothing.",
    "## ARTIFACTS\n\nA json file.",
    "## ARTIFACTS\n\ntype: json",
)
UNKNOWN_CALLEE = _lint(
    "PB225",
    "unknown-callee",
    "`@tool(quire, NAME)` names neither a built-in tool nor a document of the workspace, or `@tool(NAME, …)` a server\n"
    "that `.mcp.json` does not have.",
    "A document is a registered pipeline, a playbook in the workspace's folder or in `playbooks/`, or a directive.\n"
    "The run could not start.",
    '@tool(quire, room_pric, {"nights": 2})',
    '@tool(quire, room_price, {"nights": 2})',
)
CALLEE_INPUTS = _lint(
    "PB226",
    "callee-inputs",
    "A document that is called is not given what it needs, or is given what it does not take.",
    "The step would fail. A value with a placeholder in it is known only when the step runs: only its name is looked\n"
    "at.",
    '@tool(quire, room_price, {"night": 2})',
    '@tool(quire, room_price, {"nights": 2})',
)
DECIDED_CIRCLE = _lint(
    "PB227",
    "circle-by-directive",
    "A called document can call the playbook again, through a directive whose model calls it.",
    "The run may begin, for the model decides what it calls. If it goes round, the `depth` of the directive ends\n"
    "that: the call that would be one too many fails, and the model is told.",
    '@tool(quire, "team/greet_guest", {"guest": "Ada"})',
    '@tool(quire, room_price, {"nights": 2})',
)
SHELL_TEXT = _lint(
    "PB228",
    "shell-text",
    "The command for `shell` is a text with a value in it.",
    "A shell would read text of a person or of a model as part of the command. The run could not start. Written as\n"
    "a list it is a program and its arguments, and each value is one argument, also with spaces and quotes.",
    '@tool(quire, shell, {"command": "wc -w {{file}}"})',
    '@tool(quire, shell, {"command": ["wc", "-w", "{{file}}"]})',
)
UNKNOWN_TYPE = _lint(
    "PB229",
    "unknown-type",
    "An input or an `@output` has a type that the format does not have.",
    "It is read as a string. The types are string, text, number (num, int, float), boolean\n"
    "(bool) and enum (select, choice); an `@output` can also be json. A default comes after a colon: `(number: 3)`.",
    '- `count` (integer: 3): How many\n- `tone` (string, default "dry"): Tone',
    "- `count` (number: 3): How many\n- `tone` (string: dry): Tone",
)
SYSTEM_PLACEHOLDER = _lint(
    "PB230",
    "placeholder-in-system",
    "The system prompt has a `{{name}}` in it.",
    "`## SYSTEM` is sent to the model literally, braces included. Only steps have values put in.",
    "## SYSTEM\n\nYou write for {{audience}}.",
    "## SYSTEM\n\nYou are an editor.\n\n## STEP 1: Write\n\nWrite for {{audience}}.",
)
TRAILING_DIRECTIVE = _lint(
    "PB231",
    "directive-after-text",
    "A directive stands at the end of a line of text.",
    "The whole line is sent to the model as text, and the directive does nothing. Directives stand on a line of\n"
    "their own.",
    "Write a draft. @output(draft)",
    "Write a draft.\n\n@output(draft)",
)
BUILTIN_ARGUMENTS = _lint(
    "PB232",
    "wrong-tool-arguments",
    "A built-in tool is given what it does not take, or not given what it needs.",
    "The run could not start. Values in braces are known only when the step runs: only the name of such an\n"
    "argument is looked at.",
    '@tool(quire, file__read, {"file": "notes.txt"})',
    '@tool(quire, file__read, {"path": "notes.txt"})',
)
PYTHON_TOOL = make(
    Severity.ERROR,
    "PB233",
    "python-tool",
    "A Python tool of the workspace cannot be used, or not so.",
    "Its module cannot be loaded, it has a parameter that cannot be given as JSON, or it does not take these\n"
    "arguments. The run could not start, so this is an error, although its number is that of a lint. Modules under\n"
    "`[tools] modules` are loaded for this only in a workspace that you have agreed to (`quire trust workspace`), and\n"
    "only for a document that names one of their tools.",
    '@tool(python, plot, {"figure": 1})',
    '@tool(python, draw, {"width": 3})',
)
NO_MODEL_CALL = _lint(
    "PB234",
    "no-model-call",
    "A step that asks no model has a `@context` or a `@model`.",
    "They are about the model call of their own step. A step with a tool, or with nothing but a question, makes none;\n"
    "the sub-steps of a branch have their own.",
    '## STEP 2: Look\n\n@model(cheap)\n@tool(quire, file__read, {"path": "notes.txt"})',
    '## STEP 2: Look\n\n@tool(quire, file__read, {"path": "notes.txt"})',
)
UNKNOWN_MODEL = _lint(
    "PB235",
    "unknown-model",
    "`@model` names neither a tier nor a profile of this workspace.",
    "Tiers are `[models.tiers]` of `quire.toml`, and the usual words for sizes (`cheap`, `general`, `high`); profiles\n"
    "are `[agents.NAME]`. A document cannot name a model itself. The step is done by the model of the run.",
    "@model(chaep)",
    "@model(cheap)",
)
FOREIGN = _lint(
    "PB236",
    "foreign-syntax",
    "A value, a question or a branch is written as another format or tool writes it.",
    "It is sent to the model literally. Values of a playbook are `{{name}}`, questions `@elicit(…)`, and a branch\n"
    "marker is one line. Braces are reported only around a name that the playbook has, and not in code.",
    "- `topic` (string): What to write about\n…\nWrite about {topic}.",
    "- `topic` (string): What to write about\n…\nWrite about {{topic}}.",
    stops=True,
)
