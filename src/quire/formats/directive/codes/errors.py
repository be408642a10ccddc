"""DR0xx: errors that stop a directive from being read, and from DR020 on those that stop it from running."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

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
    "What is granted must be plain to see: `<x:permissions>` is neither the element that it looks like nor text.",
    "<metadata><x:permissions>*</x:permissions></metadata>",
    "<metadata><permissions><fetch>*</fetch></permissions></metadata>",
)
PERMISSION_TAG = _error(
    "DR010",
    "permission-tag",
    "An element inside `<permissions>` is not known.",
    "There are `<execute>`, `<fetch>`, `<sign>` and `<acknowledge>`. What older files call `search` or `load` is\n"
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
    "`extends` leads to a directive that is not there, or that cannot be used.",
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
    "`<context>` or a hook names a knowledge item that is there and cannot be used.",
    "Its file cannot be read, its name means several items, or it is a link to elsewhere. The directive does not\n"
    "start.",
    "<context><before>../names</before></context>",
    "<context><before>team/names</before></context>",
)
CHECKER = _error(
    "DR027",
    "unknown-checker",
    "A hook on `directive_return` names a directive or a knowledge item that is not there, or that cannot be used.",
    "Such a hook judges the outputs. No outputs could pass a check that cannot be made, so the directive does not\n"
    "start.",
    '<hooks><hook id="judge" event="directive_return">'
    '<action primary="execute" item_type="directive" item_id="team/bas" /></hook></hooks>',
    '<hooks><hook id="judge" event="directive_return">'
    '<action primary="execute" item_type="directive" item_id="team/base" /></hook></hooks>',
)
