"""PL04x, PL14x and PL24x: errors, warnings and advice about `schema:` documents and declared inputs."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)
_warning = partial(make, Severity.WARNING)
_lint = partial(make, Severity.LINT)

SHAPE = _error(
    "PL040",
    "schema-document",
    "A schema document is not a mapping of `schema` and `fields`, or has no fields.",
    "`schema` is the name by which steps refer to it, `fields` a mapping of field names to types with at least one\n"
    "entry.",
    "schema: Review\nfields: {}",
    "schema: Review\nfields:\n  passed: {type: bool}",
)
NAME = _error(
    "PL041",
    "schema-name",
    "The name of a schema or of a field is not a name.",
    "A name begins with a letter or `_` and goes on with letters, digits, `_` and `-`. Names stand in expressions and\n"
    "in paths like `o.f`, where a space or a dot would mean something else.",
    "schema: My Review",
    "schema: My-Review",
)
DUPLICATE = _error(
    "PL042",
    "duplicate-schema",
    "Two schema documents of one file have the same name.",
    "`schema: NAME` in a step could mean either.",
    "schema: Review\nfields: {passed: {type: bool}}\n---\nschema: Review\nfields: {notes: {type: string}}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\nschema: Notes\nfields: {notes: {type: string}}",
)
TYPE = _error(
    "PL043",
    "field-type",
    "A field has no type, or one that there is not.",
    "A type is a mapping with the key `type`: `bool`, `string`, `number`, `enum` (with `values`), `list` (with `of`),\n"
    "`object` (with `fields`) or `ref` (with `schema`).",
    "fields:\n  count: {type: integer}\n  notes: string",
    "fields:\n  count: {type: number}\n  notes: {type: string}",
)
KEY = _error(
    "PL044",
    "schema-key",
    "A schema document or a field type has a key that does not belong there.",
    "It would have no effect, and most often it is a slip. `required` is for fields only, not for the items of a\n"
    "list. `description`, `minimum`, `maximum`, `max_length`, `pattern` and `max_items` belong to the Quire dialect:\n"
    "a pipeline of the file says `dialect: quire`.",
    "fields:\n  notes: {type: string, requird: false}",
    "fields:\n  notes: {type: string, required: false}",
)
PART = _error(
    "PL045",
    "field-part",
    "A field type lacks what its type needs, or has something else in its place.",
    "An `enum` needs `values`, a list of at least one literal; a `list` needs `of`, a type; an `object` needs\n"
    "`fields`, with at least one; a `ref` needs `schema`, a name. `required` is true or false.",
    "fields:\n  tags: {type: list}\n  level: {type: enum, values: low}",
    "fields:\n  tags: {type: list, of: {type: string}}\n  level: {type: enum, values: [low, high]}",
)
NESTED_LIST = _error(
    "PL046",
    "list-of-lists",
    "The items of a list are lists.",
    "The format has no lists of lists. Make the inner list a field of an object.",
    "fields:\n  rows: {type: list, of: {type: list, of: {type: number}}}",
    "fields:\n  rows: {type: list, of: {type: object, fields: {cells: {type: list, of: {type: number}}}}}",
)
CYCLE = _error(
    "PL047",
    "schema-cycle",
    "A schema contains itself, directly or through others.",
    "Lists and optional fields do not make an exception: the format has no recursive types.",
    "schema: Node\nfields:\n  children: {type: list, of: {type: ref, schema: Node}}",
    "schema: Node\nfields:\n  children: {type: list, of: {type: string}}",
)
LIMIT = _error(
    "PL048",
    "field-limit",
    "A limit of a field type is not one, or contradicts another.",
    "`minimum` and `maximum` are numbers; `max_length` and `max_items` whole numbers of at least 1. `pattern` is a\n"
    "regular expression that RE2 and the readers of JSON Schema understand alike: no look-around, no references back,\n"
    "no flags, no `\\b`.",
    "score: {type: number, minimum: 10, maximum: 1}",
    "score: {type: number, minimum: 1, maximum: 10}",
)
DEFAULT = _error(
    "PL049",
    "input-default",
    "The default of a declared input does not fit its type.",
    "A run without a value for the input could not start.",
    "tone: {type: enum, values: [warm, dry], default: sober}",
    "tone: {type: enum, values: [warm, dry], default: dry}",
)
UNDEFINED = _warning(
    "PL140",
    "undefined-schema",
    "A `ref` names a schema that the file does not define.",
    "Steps see the schema documents of their own file only. A value that is held to the missing schema fails its step.",
    "schema: Report\nfields:\n  review: {type: ref, schema: Reveiw}",
    "schema: Report\nfields:\n  review: {type: ref, schema: Review}",
)
REPEATED = _warning(
    "PL141",
    "repeated-value",
    "A value of an enum is listed twice.",
    "Both mean the same, so one of them is a slip. Numbers are compared as numbers: `1` and `1.0` are one value.",
    "level: {type: enum, values: [low, high, low]}",
    "level: {type: enum, values: [low, medium, high]}",
)
UNDECLARED = _warning(
    "PL142",
    "undeclared-input",
    "A step reads a name that no step writes and that is not a declared input.",
    "A pipeline with `input:` takes those inputs and no others, so the name never has a value: the step fails when it\n"
    "is reached, and `get` always gives its default.",
    "pipeline: greet\ndialect: quire\ninput: {name: {type: string}}\nsteps: [{transform: {value: ctx.nmae}}]",
    "pipeline: greet\ndialect: quire\ninput: {name: {type: string}}\nsteps: [{transform: {value: ctx.name}}]",
)
UNREAD = _lint(
    "PL240",
    "unread-input",
    "No step reads a declared input.",
    "Users are asked for it, and it changes nothing.",
    "pipeline: greet\ndialect: quire\ninput: {name: {type: string}}\nsteps: [{transform: {value: \"'hello'\"}}]",
    "pipeline: greet\ndialect: quire\ninput: {name: {type: string}}\nsteps: [{transform: {value: name}}]",
)
