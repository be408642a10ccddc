"""DR3xx: good practice, and how the reader treated something unusual. Notes never make a check fail."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

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
