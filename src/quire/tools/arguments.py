"""Check the arguments of a tool against its schema, within limits: the schema may come from a hostile server. The
arguments of a call in a document are checked before the run, as far as the document alone determines them.

Patterns run on a linear engine; a pattern that needs more is left to the server to check, and so is an invalid schema.
References to other places are never looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn, cast

from msgspec import Struct, field

from quire.errors import Denied, ToolFailed
from quire.plain_schema import plainly_fits
from quire.plan.built_in_tools import FETCH, SEND, SHELL, STATE
from quire.plan.nodes import Arguments as PlannedArguments
from quire.plan.nodes import Template, UseTool, ValueSlot
from quire.plan.pipeline_work import Formula, Invoke, Literal
from quire.plan.templates import key_references
from quire.schema_limits import Measured, TooCostly, measured, parts_of
from quire.tools.builtin import NAMES, SPECS
from quire.trust.capabilities import canonical
from quire.values import Value
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.tools.registry import Foreseeing, ToolSpec


MOST_PROBLEMS = 20
LONGEST_PROBLEM = 500
LISTED_PARTS = 5_000
"""The number of parts up to which all problems of a value are listed; for a larger value only the first is."""

PATTERN_BYTES = 200_000
"""The memory limit of one compiled pattern."""

_PATTERNS = frozenset({"pattern", "patternProperties"})
_WITH_PATTERNS = frozenset({*_PATTERNS, "additionalProperties", "unevaluatedProperties"})

Check = Callable[[Value], list[str]]


class Unusable(ValueError):
    """The schema exceeds a limit, or the value does for this schema; the text says why."""


class Arguments:
    """Checks arguments. Each schema is compiled once, when it is first needed."""

    def __init__(self, redact: Callable[[str], str] = lambda text: text) -> None:
        """`redact` removes secrets from problems before they are cut, because problems quote the value."""
        self._redact = redact
        self._checks: dict[str, tuple[object, Check | str]] = {}

    def problems(self, spec: ToolSpec, arguments: Mapping[str, Value]) -> list[str]:
        """Return the problems of the arguments, each with its place. Raises `Unusable`."""
        check = self._check(spec)
        if isinstance(check, str):
            raise Unusable(check)
        # Only for built-in tools: the schema of a server may be anything.
        if spec.id in NAMES and plainly_fits(dict(spec.schema), dict(arguments)):
            return []
        return [_short(self._redact(problem)) for problem in check(arguments)]

    def unusable(self, spec: ToolSpec) -> str:
        """Return the reason why the tool cannot be used at all; empty if it can."""
        check = self._check(spec)
        return check if isinstance(check, str) else ""

    def _check(self, spec: ToolSpec) -> Check | str:
        cached = self._checks.get(spec.id)
        if cached is None or cached[0] is not spec.schema:
            cached = (spec.schema, spec.problem or check_or_reason(spec.schema, "schema"))
            self._checks[spec.id] = cached
        return cached[1]


def check_or_reason(schema: object, what: str) -> Check | str:
    """Return the result of `checking`, or the reason why the schema of a tool cannot be used."""
    try:
        return checking(schema)
    except Unusable as error:
        return f"its {what} cannot be used: {error}"


def checking(schema: object) -> Check:
    """Return a function that lists the problems of a value. Raises `Unusable`; so does the function, for a value that
    is too costly to check."""
    try:
        safe = measured(schema)
    except TooCostly as error:
        raise Unusable(str(error)) from None
    compiled: list[Check] = []

    def check(value: Value) -> list[str]:
        if not compiled:
            compiled.append(_compiled(safe))
        try:
            safe.require_affordable(value)
        except TooCostly as error:
            raise Unusable(str(error)) from None
        return compiled[0](value)

    return check


def _compiled(schema: Measured) -> Check:
    import jsonschema_rs

    linear = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES)
    for patterns in (True, False):
        text = schema.root if patterns else _without_patterns(schema.root)
        try:
            validator = jsonschema_rs.validator_for({**text}, retriever=_refuse, pattern_options=linear)
            break
        except ValueError:
            continue
    else:
        # A server's own schema may be invalid; then only the server checks its arguments.
        return lambda value: []

    def check(value: Value) -> list[str]:
        if validator.is_valid(value):
            return []
        if parts_of(value, LISTED_PARTS) <= LISTED_PARTS:
            return sorted(map(_problem, list(validator.iter_errors(value))[:MOST_PROBLEMS]))
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [_problem(error)]
        return []

    return check


def _refuse(uri: str) -> NoReturn:
    # The default would fetch the address that a server's schema names.
    raise ValueError(f"{uri} is not looked up")


def _problem(error: ValueError) -> str:
    parts: list[object] = getattr(error, "instance_path", [])
    message = str(getattr(error, "message", error))
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return f"{place.lstrip('.') or 'arguments'}: {message}"


def _short(problem: str) -> str:
    if len(problem) <= LONGEST_PROBLEM:
        return problem
    # The problem begins with the value and ends with what is wrong with it.
    return f"{problem[: LONGEST_PROBLEM // 2]} … {problem[-LONGEST_PROBLEM // 2 :]}"


def _without_patterns(schema: Mapping[str, Value]) -> dict[str, Value]:
    """Return the schema without patterns. The depth of recursion is bounded by the measure."""
    left_out = _WITH_PATTERNS if "patternProperties" in schema else _PATTERNS
    # A field named "pattern" has a schema, the keyword has a text.
    return {
        key: _plain(part)
        for key, part in schema.items()
        if key not in left_out or (key == "pattern" and not isinstance(part, str))
    }


def _plain(part: Value) -> Value:
    if isinstance(part, Mapping):
        return _without_patterns(part)
    return [_plain(item) for item in part] if isinstance(part, list | tuple) else part


class PlannedCall(Struct, frozen=True):
    """A tool call as written in a document."""

    connection: str
    tool: str
    names: tuple[str, ...] | None = None
    """The names of the arguments; None if only the run knows them."""
    literal: Mapping[str, Value] = field(default_factory=dict)
    """The arguments whose values are in the document."""
    complete: bool = False
    """True if `literal` has all arguments."""

    @classmethod
    def of_tool(cls, work: UseTool) -> PlannedCall:
        arguments = work.arguments
        if not isinstance(arguments, dict) or key_references(arguments):
            return cls(work.connection, work.tool)
        literal = {name: _value(value) for name, value in arguments.items() if _is_literal(value)}
        return cls(work.connection, work.tool, tuple(arguments), literal, len(literal) == len(arguments))

    @classmethod
    def of_invoke(cls, work: Invoke) -> PlannedCall:
        literal = {name: value.value for name, value in work.arguments if isinstance(value, Literal)}
        complete = not any(isinstance(value, Formula) for _, value in work.arguments)
        return cls("", work.tool, tuple(name for name, _ in work.arguments), literal, complete)

    def wrong_names(self, spec: ToolSpec) -> list[str]:
        """Return the problems with the names of the arguments, which do not depend on computed values."""
        if self.names is None:
            return []
        properties = cast("Mapping[str, Value]", spec.schema.get("properties", {}))
        required = cast("list[str]", spec.schema.get("required", []))
        problems = [f"{name} is missing" for name in required if name not in self.names]
        if spec.schema.get("additionalProperties") is False:
            for name in self.names:
                if name not in properties:
                    problems.append(f"unknown argument {name}" + did_you_mean(nearest(name, properties), lead="; "))
        return problems

    def wrong_values(self, spec: ToolSpec) -> list[str]:
        """Return the problems with single arguments in the document. Only for built-in tools, whose schemas have no
        rules across arguments."""
        properties = cast("Mapping[str, Value]", spec.schema.get("properties", {}))
        problems = []
        for name, value in self.literal.items():
            if name in properties and not plainly_fits(properties[name], value):
                import jsonschema_rs

                validator = jsonschema_rs.validator_for(cast("dict[str, object]", properties[name]))
                error = next(iter(validator.iter_errors(value)), None)
                problems += [f"{name}: {error.message}"] if error and error.message else []
        return problems


class PlannedBuiltIns:
    """The descriptions of the built-in tools, for a gate that makes no calls.

    `connect` returns the connection that would be called on this machine; without it another machine makes the calls.
    """

    def __init__(self, connect: Callable[[], Foreseeing] | None = None) -> None:
        self._connect = connect

    def tool_id(self, tool: str) -> str:
        return canonical(tool)

    def known(self, tool: str) -> ToolSpec | None:
        return SPECS.get(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return SPECS

    def foreseen(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        if self._connect is None or tool.id not in (FETCH, SEND, SHELL, *STATE):
            return None
        return self._connect().foreseen(tool, arguments)

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        raise ToolFailed(f"{tool.name} is not called before the run starts")

    async def prompt(self, name: str) -> str:
        raise ToolFailed("built-in tools have no prompts")

    async def close(self) -> None:
        pass


def _is_literal(value: PlannedArguments) -> bool:
    match value:
        case ValueSlot():
            return False
        case Template():
            return next(value.references(), None) is None
        case tuple():
            return all(_is_literal(part) for part in value)
        case dict():
            return not key_references(value) and all(_is_literal(part) for part in value.values())
    return True


def _value(value: PlannedArguments) -> Value:
    match value:
        case Template():
            return "".join(str(part) for part in value.parts)
        case tuple():
            return [_value(part) for part in value]
        case dict():
            return {name: _value(part) for name, part in value.items()}
        case ValueSlot():
            return None
    return value
