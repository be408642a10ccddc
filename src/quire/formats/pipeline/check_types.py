"""Type checks: unknown fields, `match` cases that can never occur, comparisons between types without an order.

Types are inferred from schemas, literals and operators. They flow from a step with a schema through stores, the pipe,
items and branches to the expressions that read them. If a type is not known, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, assert_never

from quire.expr import EvalError, compile, python_text, reads
from quire.expr.syntax import Compare, Constant, Each, FunctionCall, Logic, Node, Path, children
from quire.formats.near_names import name_fix, word_fix
from quire.formats.pipeline import syntax
from quire.formats.pipeline.check_stores import wrong_type
from quire.formats.pipeline.codes import errors, warnings
from quire.formats.pipeline.known_types import NUMBER, KnownTypes, Shapes, Types, element, order_of, parts_of
from quire.formats.pipeline.operand_types import argument_problem, failing_arguments, kind_of_node, operand_findings
from quire.formats.pipeline.prompt_references import references
from quire.formats.pipeline.syntax import ExpressionText, Pipeline, Step, Target, Text
from quire.formats.pipeline.walks import blocks, expressions, schema_of, targets
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Ref, Schema, Simple
from quire.source import Span
from quire.wording import quoted

if TYPE_CHECKING:
    from quire.diagnostics import Fix
    from quire.formats.pipeline.fields import Fields
    from quire.formats.resolver import DocumentResolver
    from quire.values import Value

_ORDERING = ("<", ">", "<=", ">=")
_NEVER = frozenset({"list", "map"})


def check_types(
    pipeline: Pipeline,
    schemas: Iterable[Schema],
    fields: Fields,
    gives: Mapping[str, FieldType],
    takes: Mapping[str, Mapping[str, Field]],
    resolver: DocumentResolver | None,
) -> None:
    """Check the types of a pipeline. `gives` are the result types of documents of other formats, by name; `takes` the
    inputs that called pipelines declare. The resolver knows the arguments of tools, and the inputs of other formats."""
    walker = TypeWalker(Shapes({schema.name: schema for schema in schemas}), fields, gives, takes, resolver)
    walker.sequence(pipeline.steps, KnownTypes({field.name: field.type for field in pipeline.input or ()}, None, {}))


class TypeWalker:
    """Lets types flow through the steps of a pipeline, and reports expressions that they do not fit."""

    def __init__(
        self,
        shapes: Shapes,
        fields: Fields,
        gives: Mapping[str, FieldType],
        takes: Mapping[str, Mapping[str, Field]],
        resolver: DocumentResolver | None,
    ) -> None:
        self._resolver = resolver
        self._gives = gives
        self._takes = takes
        self._shapes = shapes
        self._fields = fields

    def sequence(self, steps: Iterable[Step], scope: KnownTypes) -> FieldType | None:
        """Check steps that follow each other, and return the type of the last one's result."""
        pipe = scope.pipe
        for step in steps:
            pipe = self.step(step, KnownTypes(scope.stores, pipe, scope.names))
        return pipe

    def step(self, step: Step, scope: KnownTypes) -> FieldType | None:
        """Check a step, keep the type of its store, and return the type of its result."""
        when = step.guard.when if step.guard is not None else None
        for expression in expressions(step):
            self._examine(expression.expression.root, scope, expression, when is not None and expression is not when)
        for target in targets(step):
            self._passes(target, scope)
            self._other_format(target, scope)
        self._arguments(step, scope)
        type = self._result(step, scope)
        guard = step.guard or syntax.GuardKeys()
        if guard.default is not None:
            self._default(guard.default, step)
        skipped = guard.when is not None and guard.default is None
        if (guard.on_error is not None and guard.on_error.goes_on) or (guard.when is not None and not skipped):
            instead = self._shapes.infer(guard.default.expression.root, scope) if guard.default else None
            type = type if type == instead else None
        if step.output:
            before = scope.stores.get(step.output.text, type)
            scope.stores[step.output.text] = type if not skipped or before == type else None
        return type if not skipped or scope.pipe == type else None

    def _default(self, default: ExpressionText, step: Step) -> None:
        """Report a default that is written out and does not fit the schema of its step."""
        name = schema_of(step)
        schema = self._shapes.schemas.get(name.text) if name else None
        if schema is None or any(True for _ in reads(default.expression)):
            return
        try:
            value = compile(default.expression).evaluate({}, {})
        except EvalError:
            return
        if violations := schema.violations(value, self._shapes.schemas.get):
            message = f"the default does not fit the schema {schema.name}: {violations[0]}"
            self._fields.report(warnings.DEFAULT_SCHEMA, message, default.span)

    def _result(self, step: Step, scope: KnownTypes) -> FieldType | None:
        schema = schema_of(step)
        match step.body:
            case syntax.AgentBody(prompt=prompt, is_file=is_file):
                if not is_file:
                    self._prompt(prompt, scope)
            case syntax.TransformBody(value=value):
                return self._shapes.infer(value.expression.root, scope)
            case syntax.CallBody(target=target):
                return self._gives.get(target.pipeline.text)
            case syntax.MatchBody():
                self._cases(step.body, scope)
                self._blocks(step, scope)
            case syntax.FoldBody():
                return self._fold(step.body, scope)
            case syntax.ForEachBody(source=source, do=do, collect=collect, default=default):
                around = scope.of_loops() if step.body.sees_loops else {}
                each = scope.inside({**around, "item": self._item(source, scope)})
                result = self.step(do, each)
                if default is not None:
                    self._examine(default.expression.root, each, default)
                    result = result if result == self._shapes.infer(default.expression.root, each) else None
                results = ListOf(result) if result is not None and not isinstance(result, ListOf) else None
                return self.step(collect, KnownTypes(dict(scope.stores), results, {**around, "errors": None}))
            case syntax.ParallelBody():
                return self._parallel(step.body, scope)
            case syntax.StepsBody(steps=steps):
                return self.sequence(steps, scope)
            case syntax.RepeatBody():
                return self._repeat(step.body, scope)
            case syntax.StopBody() | syntax.FailBody():
                return None
            case syntax.ToolBody() | syntax.ShellBody():
                pass
            case _:
                assert_never(step.body)
        return Ref(schema.text) if schema and schema.text in self._shapes.schemas else None

    def _passes(self, target: Target, scope: KnownTypes) -> None:
        """Report values whose type does not fit a called document's input. Constants are checked with the calls."""
        fields = self._takes.get(target.pipeline.text, {})
        for name, type in self._passed_types(target, scope) if fields else ():
            if name.text in fields and (problem := wrong_type(fields[name.text], type)):
                message = f"{target.pipeline.text} cannot take this {name.text}: {problem}"
                self._fields.report(warnings.CALLEE_INPUTS, message, name.span)

    def _other_format(self, target: Target, scope: KnownTypes) -> None:
        """Report values of a type that no input of a playbook or a directive can take."""
        callee = self._resolver.document(target.pipeline.text) if self._resolver else None
        if callee is None or callee.format == "pipeline" or target.pipeline.text in self._takes:
            return
        for name, type in self._passed_types(target, scope):
            problems = [callee.wrong(name.text, value) for value in _all_values(type)]
            if problems and all(problems):
                message = f"the {callee.format} {callee.name} cannot take this {name.text}: {problems[0]}"
                self._fields.report(errors.CALLEE_TYPE, message, name.span)

    def _passed_types(self, target: Target, scope: KnownTypes) -> Iterator[tuple[syntax.Name, FieldType | None]]:
        """Yield the names that are passed to a called document with the types of their values, without constants."""
        for passed in target.passes:
            root = passed.value.expression.root if passed.value else None
            if not isinstance(root, Constant):
                type = scope.stores.get(passed.name.text) if root is None else self._shapes.infer(root, scope)
                yield passed.name, self._shapes.resolved(type)

    def _arguments(self, step: Step, scope: KnownTypes) -> None:
        """Report arguments of a tool whose type does not fit its schema."""
        match step.body:
            case syntax.ToolBody(name=name, args=args):
                tool, values = name.text, [(argument.text, value) for argument, value in args]
            case syntax.ShellBody(command=command):
                tool, values = "shell", [("command", command)]
            case _:
                return
        schema = self._resolver.parameters(tool) if self._resolver else None
        properties = schema.get("properties") if schema is not None else None
        for argument, value in values if isinstance(properties, Mapping) else ():
            parameter = properties.get(argument) if isinstance(properties, Mapping) else None
            if not isinstance(value, ExpressionText) or not isinstance(parameter, Mapping):
                continue
            root = value.expression.root
            kind = kind_of_node(root, lambda part: self._shapes.known(part, scope))
            if problem := argument_problem(parameter, self._shapes.known(root, scope), kind):
                self._fields.report(errors.ARGUMENT_TYPE, f"{argument} of {tool} is wrong: {problem}", value.span)

    def _blocks(self, step: Step, scope: KnownTypes) -> None:
        """Check the blocks of a `match`, each for itself. A store keeps a type that is the same in all of them."""
        scopes = [scope.inside(scope.names) for _ in blocks(step)]
        for block, inner in zip(blocks(step), scopes, strict=True):
            self.sequence(block, inner)
        for name in dict.fromkeys(name for inner in scopes for name in inner.stores):
            first, *rest = (inner.stores.get(name) for inner in scopes)
            scope.stores[name] = first if all(type == first for type in rest) else None

    def _fold(self, body: syntax.FoldBody, scope: KnownTypes) -> FieldType | None:
        """Return the type of `acc` after a fold: that of its first value, if each round gives the same type again. That
        is known of a transform; to walk through other steps twice would take exponential time in nested ones."""
        item, first = self._item(body.source, scope), self._shapes.infer(body.init.expression.root, scope)
        names: Types = {**scope.of_loops(), "item": item, "acc": first}
        again = None
        if isinstance(body.do.body, syntax.TransformBody) and body.do.guard is None and first is not None:
            again = self._shapes.infer(body.do.body.value.expression.root, scope.inside(names))
        type = first if again == first else None
        self.step(body.do, scope.inside({**names, "acc": type}))
        return type

    def _repeat(self, body: syntax.RepeatBody, scope: KnownTypes) -> FieldType | None:
        inner = scope.inside({**scope.names, "acc": None, "round": NUMBER})
        result = self.step(body.do, inner)
        self._examine(body.until.expression.root, inner.with_name("acc", result), body.until)
        return result

    def _parallel(self, body: syntax.ParallelBody, scope: KnownTypes) -> FieldType | None:
        around = scope.of_loops() if body.sees_loops else {}
        results = {name.text: self.step(branch, scope.inside(around)) for name, branch in body.branches}
        if body.default is not None:
            self._examine(body.default.expression.root, scope.inside(around), body.default)
            results = dict.fromkeys(results)
        return self.step(body.collect, KnownTypes(dict(scope.stores), None, {**around, "errors": None, **results}))

    def _item(self, source: object, scope: KnownTypes) -> FieldType | None:
        if isinstance(source, ExpressionText):
            return element(self._shapes.infer(source.expression.root, scope))
        return element(scope.pipe) if source is None else None

    def _examine(self, node: Node, scope: KnownTypes, text: Text, guarded: bool = False) -> None:
        """Check the paths, operators and calls of an expression. `guarded` says that its values may have been looked at
        before.

        The limit on the depth of expressions bounds the recursion.
        """
        if isinstance(node, Path):
            self._path(node.segments, node.places, scope, text)
            return
        for finding in operand_findings(node, lambda part: self._shapes.known(part, scope), guarded=guarded):
            fix: Fix | None = None
            word = finding.word
            if word is not None and isinstance(word.value, str):
                inside = Span(word.span.start + 1, word.span.end - 1)  # without its quotes
                fix = word_fix(word.value, finding.meant, self._fields.at(text, inside))
            self._fields.report(finding.code, finding.message, self._fields.at(text, finding.span), finding.help, fix)
        guarded = guarded or isinstance(node, Logic)
        if isinstance(node, Each):
            self._examine(node.source, scope, text, guarded)
            self._examine(node.body, self._shapes.inside(node, scope), text, guarded)
            return
        if isinstance(node, FunctionCall):
            self._call(node, scope, text, guarded)
            return
        if isinstance(node, Compare) and node.operator in _ORDERING:
            self._ordering(node, scope, text)
        for part in children(node):
            self._examine(part, scope, text, guarded)

    def _call(self, node: FunctionCall, scope: KnownTypes, text: Text, guarded: bool) -> None:
        for argument in node.arguments:
            self._examine(argument, scope, text, guarded)
        if node.key is not None:
            self._examine(node.key, self._shapes.inside(node, scope), text, guarded)
        for span, message in failing_arguments(node, lambda part: self._shapes.known(part, scope)):
            self._fields.report(warnings.FUNCTION_ARGUMENT, message, self._fields.at(text, span))

    def _path(self, segments: tuple[str, ...], places: tuple[Span, ...], scope: KnownTypes, text: Text) -> None:
        known, rest = scope.begin(segments)
        at = len(segments) - len(rest)
        for segment, span in zip(rest, places[at:], strict=True):
            known = self._shapes.resolved(known)
            if known is None:
                return
            holder = ".".join(segments[:at])
            inside = parts_of(known)
            field = next((field for field in inside or () if field.name == segment), None)
            if field is None:
                self._no_field(holder, segment, inside, self._fields.at(text, span))
                return
            if not field.required:
                message = f"{holder}.{segment} may be missing: its schema says required: false"
                help = f"get({holder}, '{segment}') gives null instead of failing"
                self._fields.report(warnings.OPTIONAL_FIELD, message, self._fields.at(text, span), help)
            known = field.type
            at += 1

    def _no_field(self, holder: str, segment: str, inside: tuple[Field, ...] | None, span: Span) -> None:
        fix: Fix | None = None
        if inside is None:
            message, help = f"{holder} has no fields, so it has no {segment}", ""
        else:
            names = [field.name for field in inside]
            message = f"the schema of {holder} has no field {segment}"
            help = self._fields.suggestion(segment, names)
            fix = name_fix(segment, names, span) if help else None
            help = help or f"it has {', '.join(names[:12])}"
        self._fields.report(warnings.NO_FIELD, message, span, help, fix)

    def _ordering(self, node: Compare, scope: KnownTypes, text: Text) -> None:
        left = order_of(self._shapes.resolved(self._shapes.infer(node.left, scope)))
        right = order_of(self._shapes.resolved(self._shapes.infer(node.right, scope)))
        wrong = next((kind for kind in (left, right) if kind in _NEVER), None)
        if wrong is not None:
            message = f"{node.operator} cannot compare a {wrong}"
        elif left is not None and right is not None and left != right:
            message = f"{node.operator} cannot compare a {left} with a {right}"
        else:
            return
        self._fields.report(warnings.ORDERING, message, self._fields.at(text, node.span))

    def _prompt(self, prompt: Text, scope: KnownTypes) -> None:
        for reference in references(prompt.text):
            at = reference.span.start + 1
            places = []
            for segment in reference.path:
                places.append(Span(at, at + len(segment)))
                at += len(segment) + 1
            self._path(reference.path, tuple(places), scope, prompt)

    def _cases(self, body: syntax.MatchBody, scope: KnownTypes) -> None:
        type = self._shapes.infer(body.on.expression.root, scope)
        if isinstance(type, Enum):
            labels = [python_text(value) for value in type.values]
        elif type == Simple(Kind.BOOL):
            labels = ["True", "False"]
        else:
            return
        allowed = frozenset(labels)
        for label, _ in body.cases:
            if label.text not in allowed:
                message = f"the case {quoted(label.text)} can never be chosen"
                help = f"the value is one of {', '.join(labels[:12])}"
                self._fields.report(warnings.UNREACHABLE, message, label.span, help)
        named = {label.text for label, _ in body.cases}
        missing = [label for label in dict.fromkeys(labels) if label not in named]
        if missing and body.default is None:
            message = f"no case covers {', '.join(missing[:12])}, and no `default` exists"
            self._fields.report(warnings.NOT_COVERED, message, body.on.span)


def _all_values(type: FieldType | None) -> tuple[Value, ...]:
    """Return all values of a type that has few; none if there are many, or the type is not known."""
    if isinstance(type, Enum):
        return tuple(type.values)
    return (True, False) if type == Simple(Kind.BOOL) else ()
