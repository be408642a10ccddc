"""Lower the syntax tree of a pipeline to the Plan: one node per step, expressions compiled, prompts parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from quire.expr import Expression, compile
from quire.expr.syntax import Path
from quire.formats.pipeline import syntax
from quire.formats.pipeline.prompts import template
from quire.plan.nodes import (
    Agent,
    Call,
    Capture,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    OnError,
    Parallel,
    Plan,
    Select,
    Sequence,
    Step,
    Transform,
    Work,
)
from quire.source import Span

_ABORT = OnError("abort")
DEFAULT_PARALLEL = 8


def lower(file: syntax.PipelineFile, pipeline: syntax.Pipeline, names: Mapping[str, str] | None = None) -> Plan:
    """Build the plan of one pipeline of a file, with all schemas of the file.

    `names` maps the short names by which the pipelines of a registered file call each other to their full names.
    """
    lowering = _Lowering(names or {})
    steps = tuple(lowering.step(step, at, str(at)) for at, step in enumerate(pipeline.steps, 1))
    return Plan(
        title=lowering.full(pipeline.name.text),
        format="pipeline",
        inputs=(),
        body=Sequence(steps),
        description=pipeline.description,
        schemas={schema.name: schema for schema in file.schemas},
        declared=pipeline.input,
    )


class _Lowering:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def full(self, name: str) -> str:
        return self._names.get(name, name)

    def step(self, step: syntax.Step, position: int, label: str) -> Step:
        """Lower a step. Labels of nested steps continue with a dot: `2.do`, `2.collect`, `3.security`."""
        return Step(
            position=position,
            label=label,
            title=step.kind,
            work=self._work(step.body, label),
            capture=Capture(step.output.text, None, (), None) if step.output else None,
            number=str(position),
            span=step.span,
        )

    def _work(self, body: syntax.Body, label: str) -> Work:
        match body:
            case syntax.TransformBody():
                return Transform(_formula(body.value))
            case syntax.ToolBody():
                arguments = tuple((name.text, _argument(value)) for name, value in body.args)
                return Invoke(body.name.text, arguments, _text(body.schema))
            case syntax.ShellBody():
                return Invoke("shell", (("command", _argument(body.command)),), _text(body.schema))
            case syntax.AgentBody():
                tools = None if body.tools is None else tuple(tool.text for tool in body.tools)
                return Agent(template(body.prompt.text), _text(body.identity), tools, _text(body.schema))
            case syntax.CallBody():
                return self._call(body.target)
            case syntax.MatchBody():
                cases = tuple((case.text, self._call(target)) for case, target in body.cases)
                return Select(_formula(body.on), cases, self._call(body.default) if body.default else None)
            case syntax.FoldBody():
                do = self.step(body.do, 1, f"{label}.do")
                return Fold(_source(body.source), _formula(body.init), do, body.max_items)
            case syntax.ForEachBody():
                return ForEach(
                    _source(body.source),
                    self.step(body.do, 1, f"{label}.do"),
                    self.step(body.collect, 1, f"{label}.collect"),
                    body.on_error,
                    body.max_parallel or DEFAULT_PARALLEL,
                    body.max_items,
                )
            case syntax.ParallelBody():
                branches = tuple((name.text, self.step(one, 1, f"{label}.{name.text}")) for name, one in body.branches)
                return Parallel(branches, self.step(body.collect, 1, f"{label}.collect"), body.on_error or _ABORT)
            case _:
                assert_never(body)

    def _call(self, target: syntax.Target) -> Call:
        passes = tuple((one.name.text, _passed(one)) for one in target.passes)
        return Call(self.full(target.pipeline.text), passes)


def _formula(expression: syntax.ExpressionText) -> Formula:
    return Formula(expression.text, compile(expression.expression), expression.span)


def _argument(value: syntax.Argument) -> Literal | Formula:
    return _formula(value) if isinstance(value, syntax.ExpressionText) else Literal(value.value)


def _source(source: syntax.Argument | None) -> Literal | Formula | None:
    return None if source is None else _argument(source)


def _passed(one: syntax.Pass) -> Formula:
    """Lower one passed name.

    In a list it means exactly the store of that name, even if it could not be written as a path.
    """
    if one.value is not None:
        return _formula(one.value)
    name = one.name.text
    text = f"ctx.{name}"
    path = Path(("ctx", name), (Span(0, 3), Span(4, len(text))), Span(0, len(text)))
    return Formula(text, compile(Expression(text, path)), one.name.span)


def _text(name: syntax.Name | None) -> str | None:
    return name.text if name else None
