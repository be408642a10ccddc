"""Every kind of finding about a directive or a knowledge file, with the page that `quire check --explain` prints.

DR0xx are errors (from DR020 on those that only `check` and a run find), DR1xx warnings, DR2xx lints of `check`, DR3xx
notes. Findings about knowledge files are KN, with the same hundreds. Ids are never reused.
"""

from __future__ import annotations

import sys
from functools import partial

from quire.diagnostics import Code, Severity, codes_in, make


def knowledge_codes() -> tuple[Code, ...]:
    """Return the codes of knowledge files."""
    return tuple(code for code in codes_in(sys.modules[__name__]) if code.id.startswith("KN"))


def codes() -> tuple[Code, ...]:
    """Return the codes of directives, in the order of their ids."""
    own = [code for code in codes_in(sys.modules[__name__]) if code.id.startswith("DR")]
    return tuple(sorted(own, key=lambda code: code.id))


_warning = partial(make, Severity.WARNING)

STRAY = _warning(
    "DR101",
    "stray-element",
    "An element or an attribute stands where it has no meaning.",
    "Often it is misspelled, or belongs into `<metadata>` or out of it. It has no effect.",
    '<limit turns="6" />',
    '<limits turns="6" />',
)
REPEATED = _warning(
    "DR102",
    "repeated-element",
    "An element is given twice.",
    "The first one counts.",
    '<limits turns="6" /><limits tokens="4096" />',
    '<limits turns="6" tokens="4096" />',
)
IGNORED_TEXT = _warning(
    "DR103",
    "ignored-text",
    "A text stands where it has no effect, or a permission is empty.",
    "Patterns stand in elements of their own, limits and models are attributes, instructions go after the fence.",
    "<permissions>rye.file-system.read</permissions>",
    "<permissions><execute><tool>rye.file-system.read</tool></execute></permissions>",
)
ITEM_TYPE = _warning(
    "DR104",
    "item-type",
    "A permission does not name a type of item.",
    "Types are tool, directive, knowledge, pipeline and playbook. A grant for another type covers nothing.",
    "<permissions><execute><tools>rye.bash</tools></execute></permissions>",
    "<permissions><execute><tool>rye.bash</tool></execute></permissions>",
)
HOOK_WORD = _warning(
    "DR105",
    "hook-word",
    "A hook has an event, a position, a path, an operator, an item type or a control action that is not known, or a\n"
    "pattern or a list that is not one.",
    "Such a hook never acts, or decides nothing. Control actions are retry, skip, continue, fail, abort, escalate and\n"
    "suspend.",
    '<hooks><hook id="warn" event="after_steps">'
    '<action primary="execute" item_type="directive" item_id="warn" /></hook></hooks>',
    '<hooks><hook id="warn" event="after_step">'
    '<action primary="execute" item_type="directive" item_id="warn" /></hook></hooks>',
)
TRUTH = _warning(
    "DR106",
    "truth-value",
    "`required` is neither true nor false.",
    "Anything but true counts as false.",
    '<inputs><input name="who" required="yes" /></inputs>',
    '<inputs><input name="who" required="true" /></inputs>',
)
PARAMETER_TYPE = _warning(
    "DR107",
    "parameter-type",
    "The type of an input or an output is not known.",
    "Types are string, integer, number, boolean, array and object. Values of another type are not checked.",
    '<inputs><input name="count" type="intager" /></inputs>',
    '<inputs><input name="count" type="integer" /></inputs>',
)
UNKNOWN_INPUT = _warning(
    "DR108",
    "unknown-input",
    "A text refers to an input that is not declared.",
    "Without a default it is sent to the model literally, braces included.",
    "Say hello to {input:name}.",
    "Say hello to {input:who}.",
)
NO_MODEL = _warning(
    "DR109",
    "no-model",
    "The directive does not say which model it needs.",
    "It runs on the default model; signing refuses it.",
    '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\nSay hello.',
    '<model tier="low" />',
)
NO_PERMISSIONS = _warning(
    "DR110",
    "no-permissions",
    "The directive asks for no permissions and has no parent to inherit some from.",
    "Unless the thread that starts it has some to give, it does not start.",
    '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\nSay hello.',
    "<permissions><fetch><knowledge>*</knowledge></fetch></permissions>",
)
EMPTY = _warning(
    "DR111",
    "no-instructions",
    "The model has no task.",
    "Instructions stand after the fence, or in a `<process>` inside it. A directive that others extend needs none.",
    '```xml\n<directive name="greet" version="1.0.0">\n<metadata><model tier="low" /></metadata>\n</directive>\n```',
    '```xml\n<directive name="greet" version="1.0.0">\n<metadata><model tier="low" /></metadata>\n</directive>\n```\n\n'
    "Say hello.",
)
HOOK = _warning(
    "DR112",
    "incomplete-hook",
    "A hook has no event or no action, a condition has no path or no op, or a control action decides nothing.",
    "Such a hook never does anything. It says when it acts and what it asks for: `primary` is execute, fetch or sign.",
    '<hooks><hook id="warn"><action primary="execute" item_type="directive" item_id="warn" /></hook></hooks>',
    '<hooks><hook id="warn" event="limit">'
    '<action primary="execute" item_type="directive" item_id="warn" /></hook></hooks>',
)
UNKNOWN_KNOWLEDGE = _warning(
    "DR113",
    "unknown-knowledge",
    "`<context>` or a hook names a knowledge item that does not exist.",
    "It is looked for in the project's `.ai/knowledge`, in the user's and in what comes with Quire. The thread does\n"
    "without that text.",
    "<context><before>team/nmaes</before></context>",
    "<context><before>team/names</before></context>",
)
CIRCLE = _warning(
    "DR114",
    "document-circle",
    "The instructions or a hook run a pipeline or a playbook that can lead back, or that can reach itself.",
    "The model decides what it calls. A pipeline or a playbook that reaches itself without a directive never starts,\n"
    "and a circle through directives goes round until the `depth` of the outermost is used up. Either way a call\n"
    "fails, and the model is told. Directives that only start each other are fine.",
    '`rye_execute(item_type="pipeline", item_id="lead_back")`',
    '`rye_execute(item_type="pipeline", item_id="room_price")`',
)
HOOK_TARGET = _warning(
    "DR115",
    "unknown-hook-target",
    "A hook names a directive that does not exist, or that cannot be used.",
    "When the event happens the action fails with a warning, and the thread continues without it.",
    '<hooks><hook id="warn" event="limit">'
    '<action primary="execute" item_type="directive" item_id="team/bas" /></hook></hooks>',
    '<hooks><hook id="warn" event="limit">'
    '<action primary="execute" item_type="directive" item_id="team/base" /></hook></hooks>',
)
SUPPRESSES_NOTHING = _warning(
    "DR116",
    "suppresses-nothing",
    "`<suppress>` names a layer that neither the directive, nor its parents, nor the project's hooks bring.",
    "Nothing is left out. The id is that of a knowledge item, or of a hook that brings one.",
    "<context><before>team/names</before><suppress>team/nams</suppress></context>",
    "<context><before>team/names</before></context>",
)
UNACKNOWLEDGED = _warning(
    "DR117",
    "unacknowledged-risk",
    "A permission is elevated, or covers everything, and that is not acknowledged.",
    "An elevated one reaches out of the workspace or starts programs: signing and running warn about it. With an\n"
    "unrestricted one the directive does not start. An `<acknowledge>` in `<permissions>` says why it is meant.",
    "<permissions>*</permissions>",
    '<permissions>*<acknowledge risk="unrestricted">Sets up new machines.</acknowledge></permissions>',
)
NO_ROOM = _warning(
    "DR118",
    "no-room-for-a-turn",
    "A limit of 0 leaves no room for the first turn.",
    "`turns`, `tokens`, `spend` and `duration_seconds` are looked at before each turn, so the directive does not\n"
    "start, unless a hook for `limit` raises it. `spawns` and `depth` may be 0: then it starts no other threads.",
    '<limits turns="0" />',
    '<limits turns="6" />',
)
INPUT_NAME = _warning(
    "DR119",
    "input-name",
    "An input has a name that `{input:…}` cannot hold.",
    "Such a reference has letters, digits and `_`; with any other sign it stays in the prompt as it is written.",
    '<inputs><input name="due-date" required="true">A date</input></inputs>',
    '<inputs><input name="due_date" required="true">A date</input></inputs>',
)
FOREIGN = _warning(
    "DR121",
    "foreign-placeholder",
    "A declared input is referred to as another format does: `{{name}}` or `${name}`; or its name has a sign that\n"
    "`{input:name}` cannot hold.",
    "It is sent to the model literally. Names of inputs have letters, digits and underscores. Braces are reported\n"
    "only around the name of a declared input.",
    "Say hello to {{who}}.",
    "Say hello to {input:who}.",
    stops=True,
)


_error = partial(make, Severity.ERROR)

_FENCED = '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\nSay hello.'

NO_FENCE = _error(
    "DR001",
    "no-xml-fence",
    "The file has no `xml` fence.",
    "The engine reads permissions, limits and inputs from the first fence that opens with three backticks and `xml`\n"
    "at the start of a line. A fence inside another fence is an example and does not count.",
    '# Greet\n\n<directive name="greet" version="1.0.0">\n</directive>\n\nSay hello.',
    f"# Greet\n\n{_FENCED}",
)
UNCLOSED = _error(
    "DR002",
    "unclosed-xml-fence",
    "The `xml` fence is never closed.",
    "It ends at the first line that is three backticks and nothing else.",
    '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n\nSay hello.',
    _FENCED,
)
XML = _error(
    "DR003",
    "xml-syntax",
    "The XML of the fence is not well-formed.",
    "Every element is closed, every attribute is quoted, and `&` and `<` in a text are written `&amp;` and `&lt;`.\n"
    "Inside `<template>`, `<example>` and `<raw>` anything may stand.",
    "<metadata><description>Cut & paste</description></metadata>",
    "<metadata><description>Cut &amp; paste</description></metadata>",
)
DOCTYPE = _error(
    "DR004",
    "doctype",
    "The XML holds a DOCTYPE or another declaration.",
    "Declarations can make a small text grow without bounds and can read files, so they are refused before anything\n"
    "is parsed.",
    '```xml\n<!DOCTYPE directive>\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\nSay hello.',
    _FENCED,
)
ROOT = _error(
    "DR005",
    "root-element",
    "The root of the XML is not `<directive>`.",
    "The first `xml` fence of the file has to be the directive's own; examples come after it.",
    '```xml\n<agent name="greet" version="1.0.0">\n</agent>\n```\n\nSay hello.',
    _FENCED,
)
TOO_LARGE = _error(
    "DR006",
    "directive-too-large",
    "The file, or its fence, is too large.",
    "A file has at most 200,000 bytes, its fence at most 100,000 characters. Long texts belong into knowledge files.",
    "<metadata><description>100,001 characters of it …</description></metadata>",
    "<metadata><description>Greet somebody</description></metadata>",
)
TOO_DEEP = _error(
    "DR007",
    "xml-too-deep",
    "Elements are nested deeper than 64.",
    "No directive needs that.",
    "<process><step><step><step> … and so on, 65 deep",
    "<process><step>Say hello.</step></process>",
)
CHARACTER = _error(
    "DR008",
    "xml-character",
    "The XML holds a character that XML does not allow.",
    "Control characters and lone surrogates cannot stand in XML; they usually come from a broken copy.",
    "<metadata><description>Greet␁</description></metadata>",
    "<metadata><description>Greet</description></metadata>",
)
NAMESPACE = _error(
    "DR009",
    "xml-namespace",
    "A tag or an attribute has a namespace.",
    "Permissions must be plain to see: `<x:permissions>` is neither the element that it looks like nor text.",
    "<metadata><x:permissions>*</x:permissions></metadata>",
    "<metadata><permissions><fetch>*</fetch></permissions></metadata>",
)
PERMISSION_TAG = _error(
    "DR010",
    "permission-tag",
    "An element inside `<permissions>` is not known.",
    "The elements are `<execute>`, `<fetch>`, `<sign>` and `<acknowledge>`. `search` and `load` of older files are\n"
    "`fetch`.",
    "<permissions><search><directive>*</directive></search></permissions>",
    "<permissions><fetch><directive>*</directive></fetch></permissions>",
)
RISK = _error(
    "DR011",
    "acknowledged-risk",
    "`<acknowledge>` does not name a tier of risk.",
    "The tiers are safe, write, elevated and unrestricted. Anything else would acknowledge nothing.",
    "<permissions><execute><tool>rye.bash</tool></execute>\n"
    '<acknowledge risk="high">Builds.</acknowledge></permissions>',
    "<permissions><execute><tool>rye.bash</tool></execute>\n"
    '<acknowledge risk="elevated">Builds.</acknowledge></permissions>',
)
LIMIT = _error(
    "DR020",
    "limit-value",
    "A limit is not a number, is out of range, or is set twice to different numbers.",
    "`turns`, `tokens`, `spawns` and `depth` are whole numbers, `duration_seconds` and `spend` are numbers; none is\n"
    "below 0 or above 1,000,000,000,000,000. `spend_currency` can only be USD: costs are counted in US dollars.",
    '<limits turns="many" tokens="4096" />',
    '<limits turns="6" tokens="4096" />',
)
UNKNOWN_LIMIT = _error(
    "DR021",
    "unknown-limit",
    "A limit has a name that is not known.",
    "A limit that is not kept would be worse than none. `max_turns` and `max_tokens` are the same as `turns` and\n"
    "`tokens`.",
    '<limits turn="6" />',
    '<limits turns="6" />',
)
NAME = _error(
    "DR022",
    "no-name",
    "The directive has no name.",
    "It is the attribute `name` of `<directive>` and equals the name of the file.",
    '```xml\n<directive version="1.0.0">\n</directive>\n```\n\nSay hello.',
    _FENCED,
)
PARAMETER = _error(
    "DR023",
    "parameter-name",
    "An input or an output has no name, or the name of another one.",
    "Values are given and returned by name.",
    '<inputs><input name="who" /><input name="who" /></inputs>',
    '<inputs><input name="who" /><input name="greeting" /></inputs>',
)
PARENT = _error(
    "DR024",
    "unknown-parent",
    "`extends` leads to a directive that does not exist, or that cannot be used.",
    "A parent is looked for in the project's `.ai/directives`, in the user's and in what comes with Quire. Without it\n"
    "it is not known what the directive inherits, so it does not start; neither do those that extend it.",
    '```xml\n<directive name="greet" version="1.0.0" extends="team/bas">\n</directive>\n```\n\nSay hello.',
    '```xml\n<directive name="greet" version="1.0.0" extends="team/base">\n</directive>\n```\n\nSay hello.',
)
EXTENDS_CIRCLE = _error(
    "DR025",
    "extends-circle",
    "`extends` goes round in a circle.",
    "A chain of parents has to end somewhere. The message shows the directives of the circle.",
    '```xml\n<directive name="greet" version="1.0.0" extends="team/greet">\n</directive>\n```\n\nSay hello.',
    '```xml\n<directive name="greet" version="1.0.0" extends="team/base">\n</directive>\n```\n\nSay hello.',
)
KNOWLEDGE = _error(
    "DR026",
    "unusable-knowledge",
    "`<context>` or a hook names a knowledge item that exists and cannot be used.",
    "Its file cannot be read, its name means several items, or it is a link to elsewhere. The directive does not\n"
    "start.",
    "<context><before>../names</before></context>",
    "<context><before>team/names</before></context>",
)
CHECKER = _error(
    "DR027",
    "unknown-checker",
    "A hook on `directive_return` names a directive or a knowledge item that does not exist, or that cannot be used.",
    "Such a hook judges the outputs. No outputs could pass a check that cannot be made, so the directive does not\n"
    "start.",
    '<hooks><hook id="judge" event="directive_return">'
    '<action primary="execute" item_type="directive" item_id="team/bas" /></hook></hooks>',
    '<hooks><hook id="judge" event="directive_return">'
    '<action primary="execute" item_type="directive" item_id="team/base" /></hook></hooks>',
)


_note = partial(make, Severity.NOTE)

EXTRA = _note(
    "DR301",
    "other-metadata",
    "Metadata that the format gives no meaning to.",
    "It is kept as text and has no effect.",
    "<tags>greetings</tags>",
    "<description>Greet somebody</description>",
)
LEAST_PRIVILEGE = _note(
    "DR302",
    "least-privilege",
    "No step seems to use a permission.",
    "A directive asks for what it needs and for nothing else. Only the calls that the instructions spell out are\n"
    "looked at, so this is a question, not a finding.",
    '`rye_execute(item_type="tool", item_id="rye/file-system/ls", parameters={"path": "."})`',
    '`rye_execute(item_type="tool", item_id="rye/file-system/ls", parameters={"path": "."})`\n'
    '`rye_fetch(item_type="knowledge", item_id="team/names")`',
)
ACTION_NAME = _note(
    "DR303",
    "action-name",
    "The name does not say what the directive does.",
    "A name begins with a verb: `deploy_staging`, not `staging` or `deployment_handler`.",
    '```xml\n<directive name="greeting_handler" version="1.0.0">\n</directive>\n```\n\nSay hello.',
    '```xml\n<directive name="greet_guest" version="1.0.0">\n</directive>\n```\n\nSay hello.',
)
VAGUE = _note(
    "DR304",
    "vague-criterion",
    "A criterion cannot be measured.",
    "A good criterion can be verified by looking: a file exists, a number is reached, a text is present.",
    "<success_criteria>\n<criterion>The greeting is nice</criterion>\n</success_criteria>",
    "<success_criteria>\n<criterion>The greeting names {input:who}</criterion>\n</success_criteria>",
)
NO_CRITERIA = _note(
    "DR305",
    "no-criteria",
    "The steps have no success criteria.",
    "Without them the model decides by itself when it is done.",
    '<process>\n<step name="greet">Say hello.</step>\n</process>',
    '<process>\n<step name="greet">Say hello.</step>\n</process>\n'
    "<success_criteria>\n<criterion>The greeting names {input:who}</criterion>\n</success_criteria>",
)
SIGN_LAST = _note(
    "DR306",
    "sign-last",
    "A directive or knowledge file is written, and signing it is not the last step.",
    "An item that is written or changed after it was signed cannot be used.",
    'Write .ai/directives/team/greet.md:\n`rye_execute(item_type="tool", item_id="rye/file-system/write")`',
    'Write .ai/directives/team/greet.md:\n`rye_execute(item_type="tool", item_id="rye/file-system/write")`\n'
    '`rye_sign(item_type="directive", item_id="team/greet")`',
)
INSIDE = _note(
    "DR307",
    "process-inside",
    "The process stands inside the fence.",
    "It is sent to the model all the same, its action elements as calls. After the fence it needs no escapes.",
    '```xml\n<directive name="greet" version="1.0.0">\n<process><step name="greet">Say hello.</step></process>\n'
    "</directive>\n```",
    '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\n'
    '<process>\n<step name="greet">Say hello.</step>\n</process>',
)


_lint = partial(make, Severity.LINT)

UNUSED_INPUT = _lint(
    "DR201",
    "idle-input",
    "An input is declared and never used.",
    "The user is asked for it, and it makes no difference. `{input:NAME}` in the instructions puts it in.",
    '<inputs><input name="unused" /></inputs>',
    '<inputs><input name="who" /></inputs>',
)
UNGRANTED = _lint(
    "DR202",
    "ungranted-call",
    "The instructions call for something that no permission covers.",
    "The model would be refused. Either grant it, or leave the call out.",
    '`rye_execute(item_type="tool", item_id="rye/bash", parameters={"command": "ls"})`',
    '`rye_execute(item_type="tool", item_id="rye/file-system/ls", parameters={"path": "."})`',
)
SECOND_FENCE = _lint(
    "DR203",
    "second-fence",
    "A second fence holds a `<directive>`, too.",
    "One file is one directive: only the first fence counts, the other is text for the model. An example belongs into\n"
    "a fence of four backticks.",
    'Say hello.\n\n```xml\n<directive name="other" version="1.0.0" />\n```',
    'Say hello.\n\n````\n```xml\n<directive name="other" version="1.0.0" />\n```\n````',
)
UNSIGNABLE = _lint(
    "DR204",
    "missing-field",
    "A field is missing that signing requires.",
    "`name`, `version`, `description`, `category`, `author`, `model` and `permissions` are required; with `extends`\n"
    "the permissions may be inherited.",
    '```xml\n<directive name="greet">\n<metadata><description>Greet</description></metadata>\n'
    "</directive>\n```\n\nSay hello.",
    "<description>Greet somebody</description>",
)
MISPLACED = _lint(
    "DR205",
    "misplaced",
    "The name is not that of the file, or the category is not its folder.",
    "A directive is found by its place, `CATEGORY/NAME.md` below `.ai/directives`; signing refuses one that says\n"
    "another.",
    "<category>teams</category>",
    "<category>team</category>",
)
NAME_FORM = _lint(
    "DR206",
    "name-form",
    "The name is not in snake_case.",
    "Small letters, digits and `_`, a letter first. Signing refuses any other.",
    '```xml\n<directive name="Greet-Guest" version="1.0.0">\n</directive>\n```\n\nSay hello.',
    '```xml\n<directive name="greet_guest" version="1.0.0">\n</directive>\n```\n\nSay hello.',
)
VERSION_FORM = _lint(
    "DR207",
    "version-form",
    "The version is not three numbers.",
    "It reads `1.0.0`, with nothing before or after it. Signing refuses any other.",
    '```xml\n<directive name="greet" version="1.0">\n</directive>\n```\n\nSay hello.',
    '```xml\n<directive name="greet" version="1.0.0">\n</directive>\n```\n\nSay hello.',
)
PARALLEL = _lint(
    "DR208",
    "parallel-value",
    "`parallel` of `<model>` is neither true nor false.",
    "Signing refuses it.",
    '<model tier="low" parallel="2" />',
    '<model tier="low" parallel="true" />',
)


_RIGHT = '```yaml\nname: names\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda, Grace.'

FRONT_MATTER = _error(
    "KN001",
    "frontmatter",
    "The file begins with `---` frontmatter.",
    "The metadata of a knowledge file stands in a fence of three backticks and `yaml`.",
    "---\nname: names\n---\n\nAda, Grace.",
    _RIGHT,
)
KNOWLEDGE_UNCLOSED = _error(
    "KN002",
    "unclosed-yaml-fence",
    "The `yaml` fence is never closed.",
    "It ends at the first line that is three backticks and nothing else.",
    "```yaml\nname: names\n\nAda, Grace.",
    _RIGHT,
)
METADATA = _error(
    "KN003",
    "knowledge-metadata",
    "The metadata is not a list of keys and values.",
    "Each line is `key: value`.",
    "```yaml\n- names\n```\n\nAda, Grace.",
    _RIGHT,
)
KNOWLEDGE_TOO_LARGE = _error(
    "KN004",
    "knowledge-too-large",
    "The file is too large.",
    "Everything in it goes into a prompt. A file has at most 200,000 bytes.",
    "more than 200,000 bytes",
    _RIGHT,
)
NO_METADATA = _warning(
    "KN101",
    "no-metadata",
    "The file has no `yaml` fence.",
    "Without metadata the file is not knowledge: the body follows the fence.",
    "Ada, Grace.",
    _RIGHT,
)
BEFORE = _warning(
    "KN102",
    "text-before-metadata",
    "A text stands before the `yaml` fence.",
    "The body is what follows the fence; text before it is not read.",
    f"# Names\n\n{_RIGHT}",
    _RIGHT,
)
FIELD = _warning(
    "KN103",
    "knowledge-field",
    "A field is missing or wrong that signing requires.",
    "`name`, `title`, `version` and `entry_type` are required, and the version is three numbers.",
    '```yaml\nname: names\nversion: "1.0.0"\n```\n\nAda, Grace.',
    _RIGHT,
)
PLACE = _warning(
    "KN104",
    "knowledge-place",
    "The name is not that of the file, or the category is not its folder.",
    "An item is found by its place, `CATEGORY/NAME.md` below `.ai/knowledge`; signing refuses one that says another.",
    '```yaml\nname: nmaes\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda, Grace.',
    _RIGHT,
)
