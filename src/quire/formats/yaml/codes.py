"""YM0xx: errors in the YAML of any document. Ids are never reused."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Code, Severity, make

_error = partial(make, Severity.ERROR)

SYNTAX = _error(
    "YM001",
    "yaml-syntax",
    "The text is not YAML.",
    "Nothing of the document can be trusted from there on; reading continues at the next `---` line. Most often a\n"
    "text that holds `: `, ` #` or begins with one of `@ % { [ * & !` needs quotes, or a line is indented by a tab.",
    "prompt: Review this: be short",
    'prompt: "Review this: be short"',
)
TOO_LARGE = _error(
    "YM002",
    "yaml-too-large",
    "The file is larger than 200,000 bytes, counted as they are stored.",
    "Long texts belong in files of their own, large data in what a tool reads.",
    "items: [(300 KB of records, pasted)]",
    "over: ctx.records",
)
TOO_DEEP = _error(
    "YM003",
    "yaml-too-deep",
    "Lists and mappings are nested deeper than 100 levels.",
    "Take the inner part out into a pipeline of its own.",
    "x: [[[[[[[[ … ]]]]]]]]",
    "x: [[1, 2], [3, 4]]",
)
CHARACTER = _error(
    "YM004",
    "yaml-character",
    "The text holds a character that YAML does not allow: a control character, half of a surrogate pair, or a\n"
    "second byte order mark.",
    "It is invisible in most editors. In a double-quoted text it can be written as an escape.",
    "bell: (the byte 07)",
    'bell: "\\x07"',
)
DUPLICATE_KEY = _error(
    "YM005",
    "duplicate-key",
    "A mapping has the same key twice.",
    "Other readers silently drop one of them.",
    "transform: {value: a, output: x, output: y}",
    "transform: {value: a, output: x}",
)
KEY = _error(
    "YM006",
    "yaml-key",
    "A key is not text.",
    "Unquoted, `true`, `null` and `3` are a boolean, a null and a number; quoted they are text. A key that is itself\n"
    "a list or a mapping is mostly a text in braces that lacks its quotes.",
    "title: {{ctx.title}}\nfields: {3: {type: string}}",
    'title: "{{ctx.title}}"\nfields: {"three": {type: string}}',
)
MERGE_KEY = _error(
    "YM007",
    "merge-key",
    "The merge key `<<` has a value that cannot be merged.",
    "It takes a mapping, mostly by an alias, or a list of mappings. The keys that stand in the mapping itself win,\n"
    "and those of the first in a list win over those of the next. A key that is really called so is written in quotes.",
    "first: &first [value, pipe]\nsecond: {<<: *first, output: b}",
    "first: &first {value: pipe}\nsecond: {<<: *first, output: b}",
)
ALIAS = _error(
    "YM008",
    "anchor-or-alias",
    "An alias (`*name`) that cannot be followed, or an anchor (`&name`) that is defined twice.",
    "An alias stands for what comes after the anchor of its name. That must be above it in the same document, between\n"
    "one `---` and the next, and cannot contain it. Aliases count as if they were written out: one that would make\n"
    "more than 200,000 characters of the text is refused. Text that begins with `&` or `*` needs quotes.",
    "first: [ann, bob]\nsecond: *who",
    "first: &who [ann, bob]\nsecond: *who",
)
TAG = _error(
    "YM009",
    "yaml-tag",
    "A tag that is not known, or one that does not fit what comes after it.",
    "There is `!expr`, before a text, and there are YAML's own: `!!str`, `!!int`, `!!float`, `!!bool` and `!!null`\n"
    "before a single value, `!!seq` before a list, `!!map` before a mapping.",
    "args: {count: !!int many, since: !date 2026-01-01}",
    'args: {id: !!str 12, since: "2026-01-01"}',
)
MISPLACED_TAG = _error(
    "YM010",
    "misplaced-expr",
    "`!expr` stands where only a literal can be.",
    "It marks the whole value of an argument of a `tool` step, or the `command` of a `shell` step. Inside a list or\n"
    "a mapping it is refused; there an expression makes the whole list or mapping.",
    "args: {names: [!expr ctx.first, bob]}",
    "args: {names: !expr \"[ctx.first, 'bob']\"}",
)
NUMBER = _error(
    "YM011",
    "yaml-number",
    "A number that JSON cannot hold: not-a-number, an infinity, or too many digits.",
    "Stored and sent values are written as JSON. In quotes it is text.",
    "args: {limit: .inf}",
    'args: {limit: ".inf"}',
)


def codes() -> tuple[Code, ...]:
    """Return all codes of this module, in the order of their ids."""
    return tuple(sorted((value for value in globals().values() if isinstance(value, Code)), key=lambda code: code.id))
