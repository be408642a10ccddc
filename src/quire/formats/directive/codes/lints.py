"""DR2xx: advice of `check`."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

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
