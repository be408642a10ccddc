"""DR1xx: the directive runs, but a part of it probably not as intended."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

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
    "An element is there twice.",
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
    "Without a default it is sent to the model as it stands, braces and all.",
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
    "There is nothing for the model to do.",
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
    "`<context>` or a hook names a knowledge item that is in no space.",
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
    "A hook names a directive that is not there, or that cannot be used.",
    "When the event happens the action fails with a warning, and the thread goes on as if there were no hook.",
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
    "A permission is elevated, or covers everything there is, and that is not acknowledged.",
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
    "The model is sent it as it stands. Names of inputs have letters, digits and underscores. Braces are reported\n"
    "only around the name of a declared input.",
    "Say hello to {{who}}.",
    "Say hello to {input:who}.",
    stops=True,
)
