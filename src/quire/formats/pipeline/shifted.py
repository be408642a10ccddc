"""Move trees of a pipeline to another place of the text: the same tree, with every span shifted.

Spans inside of an expression count from its own start and stay as they are.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Edit, Fix
from quire.formats.pipeline.syntax import (
    HOLE,
    AgentBody,
    AgentSettings,
    Argument,
    Body,
    CallBody,
    ExpressionText,
    FailBody,
    FoldBody,
    ForEachBody,
    GuardKeys,
    Literal,
    MatchBody,
    Name,
    ParallelBody,
    Pass,
    RepeatBody,
    ShellBody,
    Step,
    StepsBody,
    StopBody,
    Target,
    Text,
    ToolBody,
    TransformBody,
)
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence
from quire.source import Span


def shifted_node(node: Node, by: int) -> Node:
    """Return a YAML node at another place. The reader's limit on depth bounds the recursion."""
    if isinstance(node, Scalar):
        return _scalar(node, by)
    span = Span(node.span.start + by, node.span.end + by)
    if isinstance(node, Sequence):
        return Sequence(tuple([shifted_node(item, by) for item in node.items]), span)
    return Mapping(tuple([Entry(_scalar(one.key, by), shifted_node(one.value, by)) for one in node.entries]), span)


def shifted_finding(found: Diagnostic, by: int) -> Diagnostic:
    """Return a finding of a reader at another place."""
    fix = found.fix
    if fix is not None:
        fix = Fix(fix.title, tuple(Edit(_span(one.span, by), one.old, one.new) for one in fix.edits), fix.safe)
    return replace(found, span=_span(found.span, by), fix=fix)


def shifted_step(step: Step, by: int) -> Step:
    """Return a step at another place."""
    span, output, guard = step.span, step.output, step.guard
    return Step(
        step.kind,
        _body(step.body, by),
        None if output is None else Name(output.text, Span(output.span.start + by, output.span.end + by)),
        Span(span.start + by, span.end + by),
        None if guard is None else _guard(guard, by),
    )


def _span(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _scalar(scalar: Scalar, by: int) -> Scalar:
    span, body = scalar.span, scalar.body
    inside = Span(body.start + by, body.end + by)
    whole = inside if span is body else Span(span.start + by, span.end + by)
    return Scalar(scalar.value, scalar.text, whole, inside, scalar.style, scalar.tag)


def _text(text: Text, by: int) -> Text:
    scalar = None if text.scalar is None else _scalar(text.scalar, by)
    return Text(text.text, scalar.body if scalar else _span(text.span, by), scalar)


def _expression(text: ExpressionText, by: int) -> ExpressionText:
    if text.scalar is None:
        return text
    scalar = _scalar(text.scalar, by)
    return ExpressionText(text.text, scalar.body, scalar, expression=text.expression)


def _maybe(text: ExpressionText | None, by: int) -> ExpressionText | None:
    return None if text is None else _expression(text, by)


def _argument(value: Argument, by: int) -> Argument:
    return Literal(value.value, _span(value.span, by)) if isinstance(value, Literal) else _expression(value, by)


def _given(value: Argument | None, by: int) -> Argument | None:
    return None if value is None else _argument(value, by)


def _name(name: Name, by: int) -> Name:
    return Name(name.text, Span(name.span.start + by, name.span.end + by))


def _named(name: Name | None, by: int) -> Name | None:
    return None if name is None else _name(name, by)


def _names(names: tuple[Name, ...] | None, by: int) -> tuple[Name, ...] | None:
    return None if names is None else tuple([_name(one, by) for one in names])


def _guard(guard: GuardKeys, by: int) -> GuardKeys:
    return GuardKeys(_maybe(guard.when, by), guard.on_error, _maybe(guard.default, by), guard.timeout)


def _target(target: Target, by: int) -> Target:
    passes = tuple([Pass(_name(one.name, by), _maybe(one.value, by)) for one in target.passes])
    return Target(_name(target.pipeline, by), passes)


def _choice(choice: Target | StepsBody | ExpressionText, by: int) -> Target | StepsBody | ExpressionText:
    if isinstance(choice, Target):
        return _target(choice, by)
    return _steps(choice, by) if isinstance(choice, StepsBody) else _expression(choice, by)


def _steps(body: StepsBody, by: int) -> StepsBody:
    return StepsBody(tuple([shifted_step(one, by) for one in body.steps]), body.flat)


def _settings(settings: AgentSettings | None, by: int) -> AgentSettings | None:
    return None if settings is None else replace(settings, model=_named(settings.model, by))


def _body(body: Body, by: int) -> Body:
    if body is HOLE:
        return body  # known by its identity
    match body:
        case TransformBody(value=value):
            return TransformBody(_expression(value, by))
        case ToolBody(name=name, args=args, schema=schema):
            moved = tuple([(_name(key, by), _argument(value, by)) for key, value in args])
            return ToolBody(_name(name, by), moved, _named(schema, by))
        case AgentBody(prompt=prompt, identity=identity, tools=tools, schema=schema, settings=settings):
            names = _names(tools, by)
            return AgentBody(
                _text(prompt, by),
                _named(identity, by),
                names,
                _named(schema, by),
                body.is_file,
                _settings(settings, by),
            )
        case ShellBody(command=command, schema=schema, stdin=stdin, env=env, cwd=cwd, check=check, text=text):
            given, folder = _given(stdin, by), _given(cwd, by)
            return ShellBody(_argument(command, by), _named(schema, by), given, _names(env, by), folder, check, text)
        case CallBody(target=target):
            return CallBody(_target(target, by))
        case StepsBody():
            return _steps(body, by)
        case StopBody(value=value):
            return StopBody(_maybe(value, by))
        case FailBody(message=message):
            return FailBody(_argument(message, by))
        case MatchBody() | FoldBody() | ForEachBody() | ParallelBody() | RepeatBody():
            return _composed(body, by)
        case _:
            assert_never(body)


def _composed(body: MatchBody | FoldBody | ForEachBody | ParallelBody | RepeatBody, by: int) -> Body:
    match body:
        case MatchBody(on=on, cases=cases, default=default):
            chosen = None if default is None else _choice(default, by)
            moved = tuple([(_name(label, by), _choice(target, by)) for label, target in cases])
            return MatchBody(_expression(on, by), moved, chosen)  # type: ignore[arg-type]  # cases hold no expression
        case FoldBody(source=source, init=init, do=do, max_items=max_items):
            return FoldBody(_given(source, by), _expression(init, by), shifted_step(do, by), max_items)
        case ForEachBody(source=source, do=do, collect=collect, default=default):
            return replace(
                body,
                source=_given(source, by),
                do=shifted_step(do, by),
                collect=shifted_step(collect, by),
                default=_maybe(default, by),
            )
        case ParallelBody(branches=branches, collect=collect, default=default):
            named = tuple([(_name(name, by), shifted_step(step, by)) for name, step in branches])
            return replace(body, branches=named, collect=shifted_step(collect, by), default=_maybe(default, by))
        case RepeatBody(init=init, do=do, until=until, on_max=on_max):
            moved_do, moved_until = shifted_step(do, by), _expression(until, by)
            return RepeatBody(_maybe(init, by), moved_do, moved_until, body.max, _named(on_max, by))
        case _:
            assert_never(body)
