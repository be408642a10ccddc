"""Lower the syntax tree of a pipeline to the Plan: one node per step, expressions compiled, prompts parsed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from msgspec.structs import replace

from quire.expr import Compiled, Expression, compile
from quire.expr.syntax import Path
from quire.formats.pipeline import syntax
from quire.formats.pipeline.prompt_references import template
from quire.plan import pipeline_work as plan
from quire.plan.nodes import Capture, Plan, Sequence, Step, Work
from quire.plan.pipeline_work import Formula, Literal, OnError
from quire.source import Span

_ABORT = OnError("abort")
DEFAULT_PARALLEL = 8


def lower(file: syntax.PipelineFile, pipeline: syntax.Pipeline, names: Mapping[str, str] | None = None) -> Plan:
    """Build the plan of one pipeline of a file, with all schemas of the file.

    `names` maps the short names by which the pipelines of a registered file call each other to their full names.
    """
    lowering = _Lowering(names or {}, pipeline.dialect)
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
    def __init__(self, names: Mapping[str, str], dialect: bool) -> None:
        self._names = names
        self._dialect = dialect

    def full(self, name: str) -> str:
        return self._names.get(name, name)

    def step(self, step: syntax.Step, position: int, label: str) -> Step:
        """Lower a step. Labels of nested steps continue with a dot: `2.do`, `2.collect`, `3.security`."""
        work, guard = self._work(step.body, label), None
        if keys := step.guard:
            guard = plan.Guard(_optional(keys.when), keys.on_error, _optional(keys.default), keys.timeout)
        if isinstance(step.body, syntax.ShellBody) and guard is not None and guard.timeout is not None:
            # A command that takes too long is ended by its tool, which knows how.
            work, guard = _command(step.body, guard.timeout), replace(guard, timeout=None)
        return Step(
            position=position,
            label=label,
            title=step.title,
            work=work,
            capture=Capture(step.output.text, None, (), None) if step.output else None,
            number=str(position),
            span=step.span,
            guard=guard,
            kind=step.kind,
        )

    def _work(self, body: syntax.Body, label: str) -> Work:
        match body:
            case syntax.TransformBody():
                return plan.Transform(_formula(body.value))
            case syntax.ToolBody():
                arguments = tuple((name.text, _argument(value)) for name, value in body.args)
                return plan.Invoke(body.name.text, arguments, _text(body.schema))
            case syntax.ShellBody():
                return _command(body)
            case syntax.AgentBody():
                tools = None if body.tools is None else tuple(tool.text for tool in body.tools)
                prompt, file = ("", body.prompt.text) if body.is_file else (body.prompt.text, "")
                keys = body.settings or syntax.AgentSettings()
                numbers = keys.turns, keys.max_tokens, keys.temperature
                settings = plan.AgentStepSettings(_text(keys.model) or "", *numbers) if self._dialect else None
                return plan.Agent(template(prompt), _text(body.identity), tools, _text(body.schema), file, settings)
            case syntax.CallBody():
                return self._call(body.target)
            case syntax.MatchBody():
                cases = tuple((case.text, self._target(target, f"{label}.{case.text}")) for case, target in body.cases)
                if body.default is None or isinstance(body.default, syntax.ExpressionText):
                    return plan.Select(_formula(body.on), cases, _optional(body.default))
                return plan.Select(_formula(body.on), cases, self._target(body.default, f"{label}.default"))
            case syntax.StepsBody():
                return self._block(body, label)
            case syntax.FoldBody():
                do = self.step(body.do, 1, f"{label}.do")
                return plan.Fold(_source(body.source), _formula(body.init), do, body.max_items)
            case syntax.ForEachBody():
                return plan.ForEach(
                    _source(body.source),
                    self.step(body.do, 1, f"{label}.do"),
                    self.step(body.collect, 1, f"{label}.collect"),
                    body.on_error,
                    body.max_parallel or DEFAULT_PARALLEL,
                    body.max_items,
                    _optional(body.default),
                    body.sees_loops,
                )
            case syntax.ParallelBody():
                branches = tuple(
                    (name.text, self.step(step, 1, f"{label}.{name.text}")) for name, step in body.branches
                )
                collect = self.step(body.collect, 1, f"{label}.collect")
                return plan.Parallel(
                    branches, collect, body.on_error or _ABORT, _optional(body.default), body.sees_loops
                )
            case syntax.RepeatBody():
                do = self.step(body.do, 1, f"{label}.do")
                keeps_last = body.on_max is not None and body.on_max.text == "keep"
                return plan.Repeat(_optional(body.init), do, _formula(body.until), body.max, keeps_last)
            case syntax.FailBody():
                return plan.Fail(_argument(body.message))
            case syntax.StopBody():
                return plan.Stop(_optional(body.value))
            case _:
                assert_never(body)

    def _block(self, body: syntax.StepsBody, label: str) -> plan.Block:
        steps = enumerate(body.steps, 1)
        return plan.Block(Sequence(tuple(self.step(step, at, f"{label}.{at}") for at, step in steps)))

    def _target(self, target: syntax.Target | syntax.StepsBody, label: str) -> plan.Call | plan.Block:
        return self._call(target) if isinstance(target, syntax.Target) else self._block(target, label)

    def _call(self, target: syntax.Target) -> plan.Call:
        passes = tuple((passed.name.text, _passed(passed)) for passed in target.passes)
        return plan.Call(self.full(target.pipeline.text), passes)


def _command(body: syntax.ShellBody, timeout: float | None = None) -> plan.Invoke:
    """Lower a `shell` step. Keys that it leaves out are not arguments, so requests without them stay the same."""
    arguments: list[tuple[str, Literal | Formula]] = [("command", _argument(body.command))]
    if body.stdin is not None:
        arguments.append(("stdin", _argument(body.stdin)))
    if body.env is not None:
        arguments.append(("env", Literal([name.text for name in body.env])))
    if body.cwd is not None:
        arguments.append(("working_dir", _argument(body.cwd)))
    if not body.check:
        arguments.append(("check", Literal(False)))
    if body.text:
        arguments.append(("text", Literal(True)))
    if timeout is not None:
        arguments.append(("timeout", Literal(math.ceil(timeout))))
    return plan.Invoke("shell", tuple(arguments), _text(body.schema), piped=body.stdin is None)


def _optional(expression: syntax.ExpressionText | None) -> Formula | None:
    return None if expression is None else _formula(expression)


def _formula(expression: syntax.ExpressionText) -> Formula:
    return Formula(expression.text, _compiled(expression.expression), expression.span)


def _compiled(expression: Expression) -> Compiled:
    """Compile an expression, or return what the same one was compiled to before. An editor keeps the expressions of
    the steps that have not changed."""
    compiled = _COMPILED.get(expression.text)
    if compiled is None or compiled.expression is not expression:
        if len(_COMPILED) >= _MOST_COMPILED:
            _COMPILED.clear()
        compiled = _COMPILED[expression.text] = compile(expression)
    return compiled


_COMPILED: dict[str, Compiled] = {}
_MOST_COMPILED = 4_000


def _argument(value: syntax.Argument) -> Literal | Formula:
    return _formula(value) if isinstance(value, syntax.ExpressionText) else Literal(value.value)


def _source(source: syntax.Argument | None) -> Literal | Formula | None:
    return None if source is None else _argument(source)


def _passed(passed: syntax.Pass) -> Formula:
    """Lower one passed name.

    In a list it means exactly the store of that name, even if it could not be written as a path.
    """
    if passed.value is not None:
        return _formula(passed.value)
    name = passed.name.text
    text = f"ctx.{name}"
    path = Path(("ctx", name), (Span(0, 3), Span(4, len(text))), Span(0, len(text)))
    return Formula(text, compile(Expression(text, path)), passed.name.span)


def _text(name: syntax.Name | None) -> str | None:
    return name.text if name else None
