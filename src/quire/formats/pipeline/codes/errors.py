"""Errors of pipelines (PL0xx), and all findings about schemas, declared inputs (PL04x, PL14x, PL24x) and types (TY1xx).

PL030 to PL039 are errors that only a definition written at run time can have. The gate finds them, not `check`: a
pipeline in a file may do what they forbid.
"""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

NO_PIPELINE = _error(
    "PL001",
    "no-pipeline",
    "No document of the file has the key `pipeline`.",
    "Schemas alone do nothing. A file has one `pipeline:` document, and any number of `schema:` documents beside it.",
    "schema: Review\nfields: {passed: {type: bool}}",
    "schema: Review\nfields: {passed: {type: bool}}\n---\npipeline: review\nsteps:\n"
    '  - agent: {prompt: "Review {ctx.doc}.", schema: Review}',
)
DOCUMENT = _error(
    "PL002",
    "document-kind",
    "A document is neither a pipeline nor a schema.",
    "Documents are separated by `---` lines. Each has the key `pipeline` or the key `schema`, which is its name.",
    "name: greet\nsteps:\n  - transform: {value: \"'hello'\"}",
    "pipeline: greet\nsteps:\n  - transform: {value: \"'hello'\"}",
)
SEVERAL = _error(
    "PL003",
    "several-pipelines",
    "A file that is run directly has more than one `pipeline:` document.",
    "It would not be clear which one is meant. Only files that are registered in a workspace may have several.",
    "pipeline: one\nsteps: [{transform: {value: '1'}}]\n---\npipeline: two\nsteps: [{transform: {value: '2'}}]",
    "pipeline: one\nsteps: [{transform: {value: '1'}}]",
)
DUPLICATE = _error(
    "PL004",
    "duplicate-pipeline",
    "Two pipelines of one file have the same name.",
    "A `call` of that name could mean either.",
    "pipeline: clean\nsteps: [{transform: {value: pipe}}]\n---\npipeline: clean\nsteps: [{transform: {value: '1'}}]",
    "pipeline: clean\nsteps: [{transform: {value: pipe}}]\n---\npipeline: count\nsteps: [{transform: {value: '1'}}]",
)
DOCUMENT_KEY = _error(
    "PL005",
    "pipeline-key",
    "A pipeline document has a key that does not belong there.",
    "Its keys are `pipeline`, `description`, `dialect` and `steps`, and in the Quire dialect `input`. Anything else\n"
    "would have no effect.",
    "pipeline: greet\ndescripton: Says hello.\nsteps: [{transform: {value: \"'hello'\"}}]",
    "pipeline: greet\ndescription: Says hello.\nsteps: [{transform: {value: \"'hello'\"}}]",
)
PLANNED = _error(
    "PL006",
    "not-yet-supported",
    "`input`, `defaults` and `refine` belong to the format but are not yet supported.",
    "They are refused rather than ignored. Inputs need no declaration: they are what a step reads as `ctx.NAME`\n"
    "before a step has written it. `get` gives a default. A pipeline that says `dialect: quire` may declare `input`.",
    "pipeline: greet\ndefaults: {name: you}\nsteps: [{transform: {value: \"'Hello, ' + ctx.name\"}}]",
    "pipeline: greet\nsteps: [{transform: {value: \"'Hello, ' + get(ctx, 'name', 'you')\"}}]",
)
NAME = _error(
    "PL007",
    "pipeline-name",
    "The name of a pipeline, a variable, a branch, an identity or a passed value is not a name.",
    "A name begins with a letter or `_`, followed by letters, digits, `_` and `-`. Names stand in expressions\n"
    "and in the paths of steps, where a space or a dot would mean something else. A target may also be `KEY.NAME`.",
    "- transform: {value: '1', output: a.b}",
    "- transform: {value: '1', output: a_b}",
)
STEP = _error(
    "PL008",
    "step-shape",
    "A step is not a mapping with exactly one key.",
    "The key says what kind of step it is, and everything else is inside its value. Keys that stand beside the kind\n"
    "are mostly those of its body, not indented far enough.",
    "- transform:\n  value: '1'\n  output: one",
    "- transform:\n    value: '1'\n    output: one",
)
KIND = _error(
    "PL009",
    "step-kind",
    "The kind of the step is unknown.",
    "The kinds are `transform`, `tool`, `shell`, `agent`, `call`, `match`, `fold`, `for_each` and `parallel`.",
    '- llm: {prompt: "Summarise {ctx.doc}."}',
    '- agent: {prompt: "Summarise {ctx.doc}."}',
)
BODY = _error(
    "PL010",
    "step-body",
    "The value of a step is not a mapping.",
    "Even a step with one key names it.",
    '- agent: "Summarise {ctx.doc}."',
    '- agent: {prompt: "Summarise {ctx.doc}."}',
)
KEY = _error(
    "PL011",
    "step-key",
    "A step has a key that does not belong to its kind.",
    "It would have no effect, and most often it is a slip.",
    "- transform: {value: '1', outptu: one}",
    "- transform: {value: '1', output: one}",
)
MISSING = _error(
    "PL012",
    "missing-key",
    "A key that cannot be left out is missing.",
    "`on_error` of a `for_each` has no default on purpose: its author decides what happens to the other items\n"
    "when one fails. The `output` of a `fold` is where its result goes.",
    '- for_each:\n    over: ctx.docs\n    do: {agent: {prompt: "Read {item}."}}\n'
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.docs\n    on_error: continue\n"
    '    do: {agent: {prompt: "Read {item}."}}\n    collect: {transform: {value: pipe}}',
)
VALUE = _error(
    "PL013",
    "wrong-value",
    "A key has a value of another kind than it takes.",
    "A text in braces that lacks its quotes is a mapping, and a single name in place of a list needs brackets.",
    "- call: {pipeline: report, pass: review}",
    "- call: {pipeline: report, pass: [review]}",
)
NOT_AN_EXPRESSION = _error(
    "PL014",
    "expression-not-text",
    "`value`, `on`, `over`, `init` or a passed value is not text.",
    "These are always expressions, and an expression is text: a number or a list is written in quotes, and a text in\n"
    "quotes inside of quotes.",
    '- fold: {over: ctx.xs, init: 0, do: {transform: {value: "acc + item"}}, output: total}',
    '- fold: {over: ctx.xs, init: "0", do: {transform: {value: "acc + item"}}, output: total}',
)
TARGET = _error(
    "PL015",
    "static-target",
    "The target of a `call` or of a case is an expression.",
    "Which pipelines can run is known before anything does. `match` chooses among static targets by a value.",
    "- call: {pipeline: !expr ctx.handler}",
    "- match: {on: ctx.handler, cases: {mail: {pipeline: by_mail}, post: {pipeline: by_post}}}",
)
SOURCE = _error(
    "PL016",
    "list-source",
    "A `fold` or a `for_each` has both `over` and `items`.",
    "`over` is an expression, `items` a literal list; without either the incoming `pipe` is the list.",
    '- fold: {over: ctx.xs, items: [1, 2], init: "0", do: {transform: {value: "acc + item"}}, output: total}',
    '- fold: {over: ctx.xs, init: "0", do: {transform: {value: "acc + item"}}, output: total}',
)
ON_ERROR = _error(
    "PL017",
    "on-error",
    "`on_error` is not `continue`, `abort` or `retry(N)`.",
    "`continue` drops what failed, `abort` fails the step, `retry(N)` tries up to N more times and then aborts. N\n"
    "has up to six digits and no spaces around it.",
    "on_error: retry",
    "on_error: retry(2)",
)
LIMIT = _error(
    "PL018",
    "limit",
    "`max_items` or `max_parallel` is not a whole number of at least 1.",
    "Zero would mean that nothing is ever done. Leave the key out for the default.",
    "max_parallel: 0",
    "max_parallel: 4",
)
LABEL = _error(
    "PL019",
    "duplicate-label",
    "Two cases of a `match` have the same label.",
    "Labels are compared as text, as Python writes values: unquoted, `true` is the label `True`, `null` is `None`.",
    'cases: {true: {pipeline: a}, "True": {pipeline: b}}',
    "cases: {true: {pipeline: a}, false: {pipeline: b}}",
)
CYCLE = _error(
    "PL020",
    "call-cycle",
    "A pipeline can reach itself through `call` or `match`, or calls a playbook that can.",
    "Recursion is not allowed, so every run ends. This also holds for a case that may never be chosen, and for a call\n"
    "through a playbook. Use `fold` or `for_each` to walk a list.",
    "pipeline: walk\nsteps:\n  - call: {pipeline: walk}",
    "pipeline: walk\nsteps:\n  - for_each:\n      over: ctx.parts\n      on_error: abort\n"
    "      do: {call: {pipeline: one_part, pass: {part: item}}}\n      collect: {transform: {value: pipe}}",
)
CLAIMED_TWICE = _error(
    "PL021",
    "claimed-twice",
    "Two registered files of a workspace declare pipelines of one name.",
    "Neither is loaded: a name must mean one pipeline, whichever file is read first. Here `pipelines/report.yaml` and\n"
    "`pipelines/old/report.yaml` begin alike.",
    "pipeline: report\nsteps:\n  - transform: {value: '1'}",
    "pipeline: report_of_last_year\nsteps:\n  - transform: {value: '1'}",
)
DIALECT = _error(
    "PL022",
    "dialect",
    "The document asks for a dialect that does not exist.",
    "Without `dialect:` a pipeline is in the language of its format, which every implementation reads.\n"
    "`dialect: quire` adds what Quire can do beyond it; `quire check --portable` lists what a document uses of that.",
    "pipeline: greet\ndialect: quier\nsteps: [{transform: {value: \"'hello'\"}}]",
    "pipeline: greet\ndialect: quire\nsteps: [{transform: {value: \"'hello'\"}}]",
)
UNUSED_DEFAULT = _error(
    "PL023",
    "unused-default",
    "A step has a `default`, but no failure of it is survived, and nothing leaves it out.",
    "`default` is the value of a step that failed and whose `on_error` lets the run continue, or that its `when`\n"
    "leaves out. Without one of these it would have no effect.",
    "pipeline: p\ndialect: quire\nsteps:\n- tool: {name: file__read, args: {path: notes.md}, default: \"''\"}",
    "pipeline: p\ndialect: quire\nsteps:\n"
    "- tool: {name: file__read, args: {path: notes.md}, on_error: continue, default: \"''\"}",
)
TIMEOUT = _error(
    "PL024",
    "timeout",
    "`timeout` is not a duration, or a longer one than such a step may have.",
    "A duration is a number and a unit: `500ms`, `30s`, `5m`, `1h`. A command may take ten minutes, anything else\n"
    "a day.",
    "pipeline: p\ndialect: quire\nsteps:\n- shell: {command: make test, timeout: 5}",
    "pipeline: p\ndialect: quire\nsteps:\n- shell: {command: make test, timeout: 5m}",
)
STOP_IN_FAN = _error(
    "PL025",
    "stop-in-fan",
    "A `stop` is inside the items of a `for_each` or the branches of a `parallel`.",
    "It would end the whole pipeline while other items are under way, and which of them had ended would depend on\n"
    "chance. Let the item return a value, and stop after the `for_each` or `parallel`.",
    "pipeline: p\ndialect: quire\nsteps:\n- for_each:\n    over: ctx.xs\n    on_error: abort\n"
    "    do: {stop: {value: item}}\n    collect: {transform: {value: pipe}}",
    "pipeline: p\ndialect: quire\nsteps:\n- for_each:\n    over: ctx.xs\n    on_error: abort\n"
    "    do: {transform: {value: item}}\n    collect: {transform: {value: pipe}}\n    output: found\n"
    "- stop: {when: count(found) > 0, value: found}",
)


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
SCHEMA_NAME = _error(
    "PL041",
    "schema-name",
    "The name of a schema or of a field is not a name.",
    "A name begins with a letter or `_`, followed by letters, digits, `_` and `-`. Names stand in expressions and\n"
    "in paths like `o.f`, where a space or a dot would mean something else.",
    "schema: My Review",
    "schema: My-Review",
)
DUPLICATE_SCHEMA = _error(
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
    "A field has no type, or an unknown one.",
    "A type is a mapping with the key `type`: `bool`, `string`, `number`, `enum` (with `values`), `list` (with `of`),\n"
    "`object` (with `fields`) or `ref` (with `schema`).",
    "fields:\n  count: {type: integer}\n  notes: string",
    "fields:\n  count: {type: number}\n  notes: {type: string}",
)
SCHEMA_KEY = _error(
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
SCHEMA_CYCLE = _error(
    "PL047",
    "schema-cycle",
    "A schema contains itself, directly or through others.",
    "Lists and optional fields do not make an exception: the format has no recursive types.",
    "schema: Node\nfields:\n  children: {type: list, of: {type: ref, schema: Node}}",
    "schema: Node\nfields:\n  children: {type: list, of: {type: string}}",
)
FIELD_LIMIT = _error(
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


OPERAND_TYPE = _warning(
    "TY101",
    "operand-type",
    "An operator or a combinator gets a value of a kind that it does not take.",
    "`+` needs two numbers, two texts or two lists, the other operators two numbers; `map`, `filter`, `count`, `sum`\n"
    "and `join` need a list. The step fails when it is reached. Kinds are known from schemas, declared inputs and\n"
    "constants. `<` and its relatives are PL110, functions of the dialect PL120.",
    "pipeline: p\ndialect: quire\ninput: {pages: {type: number}}\nsteps:\n"
    "- transform: {value: \"'pages: ' + ctx.pages\"}",
    "pipeline: p\ndialect: quire\ninput: {pages: {type: number}}\nsteps:\n"
    "- transform: {value: \"'pages: ' + text(ctx.pages)\"}",
)
MAY_BE_NULL = make(
    Severity.LINT,
    "TY102",
    "may-be-absent",
    "An operator uses the result of `get` without a default, or of `find`, which is null if the value is missing.",
    "With null the step fails. A third argument of `get` is used instead of null; `or` after `find` does the same. A\n"
    "path to a field that may be missing is PL209, a variable that may not be written PL210. Where `and`, `or` or\n"
    "`when` may have looked at the value, nothing is said.",
    "- transform: {value: \"get(ctx, 'count') + 1\"}",
    "- transform: {value: \"get(ctx, 'count', 0) + 1\"}",
)
ARGUMENT_TYPE = _warning(
    "TY103",
    "argument-schema",
    "An argument of a tool has a type that the tool does not take.",
    "The step fails when it is reached. The type of an expression is known from schemas, declared inputs and\n"
    "operators. Arguments that are written out, missing or unknown are PL113; commands that are written out PL111.",
    "pipeline: p\ndialect: quire\ninput: {lines: {type: number}}\nsteps:\n"
    "- tool: {name: file__read, args: {path: !expr ctx.lines}}",
    "pipeline: p\ndialect: quire\ninput: {file: {type: string}}\nsteps:\n"
    "- tool: {name: file__read, args: {path: !expr ctx.file}}",
)
CALLEE_TYPE = _warning(
    "TY104",
    "callee-input-type",
    "No value that is passed to a playbook or a directive fits its input.",
    "The step fails when it is reached. All values of the type are tried: those of an enum, true and false.\n"
    "Constants, and the inputs of called pipelines, are PL114; constants of playbooks PB226.",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- call: {pipeline: file_it, pass: {tray: mail.kind}}",
    "schema: Mail\nfields: {tray: {type: enum, values: [left, right]}}\n---\npipeline: p\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- call: {pipeline: file_it, pass: {tray: mail.tray}}",
)
NEVER_EQUAL = _warning(
    "TY105",
    "never-equal",
    "`==` or `!=` compares values that are never equal: of two kinds, or with a word that the schema does not have.",
    "The comparison has the same outcome in every run, so what depends on it always or never happens. Labels of\n"
    "`match` are PL107, conditions of playbooks PB206.",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- agent: {prompt: pay it, when: \"mail.kind == 'Bill'\"}",
    "schema: Mail\nfields: {kind: {type: enum, values: [bill, letter]}}\n---\npipeline: p\ndialect: quire\nsteps:\n"
    "- agent: {prompt: hi, schema: Mail, output: mail}\n- agent: {prompt: pay it, when: \"mail.kind == 'bill'\"}",
)


LAUNCHES = _error(
    "PL030",
    "inline-launch",
    "A `tool` step of an inline definition launches a pipeline, or delegates to another agent.",
    "A definition that an agent writes at run time reaches other pipelines by `call` only. So the number of runs that\n"
    "one launch can start is known.",
    "- tool: {name: run_pipeline, args: {name: report}}",
    "- call: {pipeline: report}",
)
IDENTITY = _error(
    "PL031",
    "inline-identity",
    "An `agent` step of an inline definition runs under another identity than the one that launches it.",
    "Another identity may have a model and tools that the launching agent does not have. Without `identity` the step\n"
    "runs as the agent that launched it. A registered pipeline may name any identity.",
    '- agent: {prompt: "Review it.", identity: boss}',
    '- agent: {prompt: "Review it."}',
)
NO_COMMANDS = _error(
    "PL032",
    "inline-shell",
    "An inline definition runs a command, and commands are not allowed here.",
    "The user allows commands with `--allow shell`. Files are read and written without it, by tools.",
    "- shell: {command: cat notes.txt}",
    "- tool: {name: file__read, args: {path: notes.txt}}",
)
BEYOND = _error(
    "PL033",
    "inline-beyond",
    "A step of an inline definition names a model, a prompt file or a variable.",
    "A definition that an agent writes at run time has what the agent itself has: its model, the text that it writes,\n"
    "and no variables of the user. A registered pipeline may name them.",
    "pipeline: p\ndialect: quire\nsteps:\n- agent: {prompt: hi, model: large}",
    "pipeline: p\ndialect: quire\nsteps:\n- agent: {prompt: hi}",
)
