"""The language of pipelines as a table: the kinds of step, and the role, the place and the need of each of their keys.

The reader, the writers, the walks, the gate of inline definitions and the editor go through these rows. A new key or
kind is a row here; its meaning and its snippet are in `language_words.py`, which only the editor loads. The rows of a
kind are in the order in which a step is written; messages list the keys of the dialect last.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from quire.formats.pipeline import syntax
from quire.plan import pipeline_work as plan

Role: TypeAlias = Literal[
    "expression",  # always an expression
    "argument",  # a literal value, or an expression with the tag !expr
    "arguments",  # names with such values
    "command",  # a command for a shell, or the words of one
    "items",  # a list of literal values
    "prompt",  # a text with references, or the name of a file with one
    "tool",
    "tools",  # the tools that a model is offered at most
    "variables",  # names of environment variables
    "identity",
    "model",
    "schema",
    "store",
    "target",  # a document to run
    "passes",  # the values that the document is given
    "step",
    "steps",
    "branches",
    "cases",  # targets or blocks by label
    "choice",  # a target, a block or an expression
    "number",
    "flag",
    "word",
    "policy",
    "duration",
]
ROLES: tuple[Role, ...] = get_args(Role)


class Key(Struct, frozen=True):
    """A key in the body of a step."""

    name: str
    role: Role
    needed: bool = False
    dialect: bool = False
    """True for a key that the Quire dialect adds to the kind."""
    own: bool = False
    """True for a key that every document may have although the format that all implementations share lacks it."""
    guard: bool = False
    """True for a key around the work, which is in the guard of the step."""
    inner: bool = False
    """True for an expression that is evaluated where the nested steps are."""
    field: str = ""
    """Where the value is in the body, if not under the name of the key."""
    usual: bool | None = None
    """The value that need not be written."""
    most: int | None = None
    """The largest number that it may be, if there is one."""

    def of(self, node: object) -> object:
        """Return the value of the key in a body or a guard; None if it is not written."""
        for name in (self.field or self.name).split("."):
            node = getattr(node, name, None)
        if self.field == "source" and isinstance(node, syntax.Literal) != (self.role == "items"):
            return None
        return None if node is self.usual else node


class Kind(Struct, frozen=True):
    """A kind of step."""

    name: str
    body: type[syntax.Body]
    node: type[plan.PipelineWork]
    keys: tuple[Key, ...]
    dialect: bool = False
    """True for a kind that only the Quire dialect has."""
    meant: tuple[str, ...] = ()
    """Words that people write for it. Those of the kinds of the dialect come first there."""


_SCHEMA = Key("schema", "schema")
_OUTPUT = Key("output", "store")
_SOURCE = (Key("over", "expression", field="source"), Key("items", "items", field="source"))
_DO = Key("do", "step", needed=True)
_COLLECT = Key("collect", "step", needed=True)
_FAN_DEFAULT = Key("default", "expression", dialect=True, inner=True)
_WHEN = Key("when", "expression", dialect=True, guard=True)
_ON_ERROR = Key("on_error", "policy", dialect=True, guard=True)
_SURVIVING = (_ON_ERROR, Key("default", "expression", dialect=True, guard=True))
_TIMEOUT = Key("timeout", "duration", dialect=True, guard=True)
GUARD_KEYS = (_WHEN, *_SURVIVING, _TIMEOUT)

KINDS = (
    Kind("transform", syntax.TransformBody, plan.Transform, meant=("set", "assign", "expr", "let"), keys=(
        Key("value", "expression", needed=True), _OUTPUT,
    )),
    Kind("tool", syntax.ToolBody, plan.Invoke, meant=("action", "function", "invoke"), keys=(
        Key("name", "tool", needed=True), Key("args", "arguments"), _SCHEMA, _OUTPUT, *_SURVIVING, _TIMEOUT,
    )),
    Kind("shell", syntax.ShellBody, plan.Invoke, meant=("run", "bash", "sh", "exec", "command"), keys=(
        Key("command", "command", needed=True),
        Key("stdin", "argument", dialect=True),
        Key("env", "variables", dialect=True),
        Key("cwd", "argument", dialect=True),
        Key("check", "flag", dialect=True, usual=True),
        Key("text", "flag", dialect=True, usual=False),
        _SCHEMA, _OUTPUT, *_SURVIVING, _TIMEOUT,
    )),
    Kind("agent", syntax.AgentBody, plan.Agent, meant=("llm", "prompt", "ai", "model", "think"), keys=(
        Key("prompt", "prompt", needed=True),
        Key("model", "model", dialect=True, field="settings.model"),
        Key("turns", "number", dialect=True, field="settings.turns"),
        Key("max_tokens", "number", dialect=True, field="settings.max_tokens"),
        Key("temperature", "number", dialect=True, field="settings.temperature"),
        Key("identity", "identity"),
        Key("capabilities", "tools", field="tools"),
        _SCHEMA, _OUTPUT, *_SURVIVING, _TIMEOUT,
    )),
    Kind("call", syntax.CallBody, plan.Call, meant=("pipeline", "include", "use"), keys=(
        Key("pipeline", "target", needed=True, field="target"),
        Key("pass", "passes", field="target.passes"),
        _OUTPUT, *_SURVIVING, _TIMEOUT,
    )),
    Kind("match", syntax.MatchBody, plan.Select, meant=("if", "switch", "case", "branch", "when"), keys=(
        Key("on", "expression", needed=True), Key("cases", "cases", needed=True), Key("default", "choice"),
        _OUTPUT, _ON_ERROR,
    )),
    Kind("fold", syntax.FoldBody, plan.Fold, meant=("reduce", "while"), keys=(
        *_SOURCE, Key("init", "expression", needed=True), _DO, Key("output", "store", needed=True),
        Key("max_items", "number"),
    )),
    Kind("for_each", syntax.ForEachBody, plan.ForEach, meant=("loop", "foreach", "each", "map", "for"), keys=(
        *_SOURCE, Key("max_parallel", "number"), Key("max_items", "number", own=True),
        Key("on_error", "policy", needed=True), _FAN_DEFAULT, _DO, _COLLECT, _OUTPUT,
    )),
    Kind("parallel", syntax.ParallelBody, plan.Parallel, keys=(
        Key("on_error", "policy"), _FAN_DEFAULT, Key("branches", "branches", needed=True), _COLLECT, _OUTPUT,
    )),
    Kind("steps", syntax.StepsBody, plan.Block, dialect=True, meant=("block", "group", "do", "sequence"), keys=(
        Key("do", "steps", needed=True, field="steps"), _OUTPUT, *_SURVIVING,
    )),
    Kind("repeat", syntax.RepeatBody, plan.Repeat, dialect=True, meant=("loop", "while", "until", "retry"), keys=(
        Key("init", "expression"), _DO, Key("until", "expression", needed=True, inner=True),
        Key("max", "number", needed=True, most=10_000), Key("on_max", "word"), _OUTPUT,
    )),
    Kind("fail", syntax.FailBody, plan.Fail, dialect=True, meant=("error", "raise", "throw", "abort"), keys=(
        Key("message", "argument", needed=True),
    )),
    Kind("stop", syntax.StopBody, plan.Stop, dialect=True, meant=("return", "end", "exit", "finish", "done"), keys=(
        Key("value", "expression"),
    )),
)  # fmt: skip
"""Every kind of step: those that all implementations share, then those of the Quire dialect."""

BODY_KEYS: dict[type, tuple[Key, ...]] = {
    kind.body: tuple(key for key in kind.keys if not key.guard and key.role != "store") for kind in KINDS
}
"""The keys whose values are in a body, by its class."""

KEYS = {kind.name: tuple(key.name for key in kind.keys if not key.dialect) for kind in KINDS if not kind.dialect}
"""Every kind of step of the seed with the keys of its body."""

DIALECT_KINDS = {kind.name: tuple(key.name for key in kind.keys if not key.dialect) for kind in KINDS if kind.dialect}
"""The kinds that the Quire dialect adds."""

DIALECT_KEYS = {
    kind.name: tuple(key.name for key in kind.keys if key.dialect)
    for kind in KINDS
    if any(key.dialect for key in kind.keys)
}
"""The keys that the Quire dialect adds to a kind, beside those that every kind has there."""

NEEDED = {kind.name: tuple(key.name for key in kind.keys if key.needed) for kind in KINDS}

WHY = {
    "on_error": "add on_error: continue, or abort, or retry(2): the key has no default",
    "output": "add output: NAME, which names the variable for the result",
    "do": "add do: and the one step that is done each time",
    "collect": 'add a step on all the results, such as collect: {transform: {value: "pipe"}}',
    "max": "give the most rounds: a loop always ends",
    "until": "an expression on acc, the result of the round, that ends the loop when it holds",
}
"""The help for a key that is missing, by the key."""

MEANT = {word: kind.name for kind in KINDS if not kind.dialect for word in kind.meant}
"""Words that people write for a kind."""

MEANT_IN_DIALECT = {word: kind.name for kind in KINDS for word in kind.meant}

MORE_KEYS = {kind: (*DIALECT_KEYS.get(kind, ()), "when", "title") for kind in (*KEYS, *DIALECT_KINDS)}
"""All keys that the Quire dialect adds to a kind."""

ALL_KINDS = {kind: (*keys, *MORE_KEYS[kind]) for kind, keys in (KEYS | DIALECT_KINDS).items()}
"""Every kind of the Quire dialect with all keys that its body may have there."""


def kinds(dialect: bool) -> dict[str, tuple[str, ...]]:
    """Return the kinds that a document may use, with their keys."""
    return ALL_KINDS if dialect else KEYS
