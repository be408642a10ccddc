"""Guess the shapes of inputs that a pipeline does not declare, from the way in which its expressions use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.expr.syntax import Arithmetic, Compare, Constant, Each, Get, Join, Node, Path, Total, children
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Fold, ForEach, Formula

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.values import Value

_MOST_DEPTH = 8


class Shape(Struct):
    """A value by the use that is made of it: members that are read, items that are gone through, numbers."""

    fields: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    is_number: bool = False
    is_flag: bool = False

    def member(self, name: str) -> Shape:
        return self.fields.setdefault(name, Shape())

    def item(self) -> Shape:
        self.items = self.items or Shape()
        return self.items

    def value(self, name: str, todo: str, depth: int = 0) -> Value:
        """Return a placeholder of this shape."""
        if depth > _MOST_DEPTH:
            return None
        if self.items is not None:
            if self.items.fields or self.items.is_number:
                return [self.items.value(name, todo, depth + 1)]
            return [f"{todo} one", f"{todo} another"]
        if self.fields:
            return {one: shape.value(one, todo, depth + 1) for one, shape in self.fields.items()}
        return 1 if self.is_number else True if self.is_flag else f"{todo} {name}"

    def declaration(self, depth: int = 0) -> str:
        """Return the type of this shape as `input` of a pipeline declares it."""
        if self.items is not None and depth <= _MOST_DEPTH:
            return f"{{type: list, of: {self.items.declaration(depth + 1)}}}"
        if self.fields and depth <= _MOST_DEPTH:
            inside = ", ".join(f"{name}: {one.declaration(depth + 1)}" for name, one in self.fields.items())
            return f"{{type: object, fields: {{{inside}}}}}"
        return "{type: number}" if self.is_number else "{type: bool}" if self.is_flag else "{type: string}"


def input_shapes(plan: Plan) -> Mapping[str, Shape]:
    """Return the shape of every value that the expressions and prompts of a pipeline read, by name."""
    root = Shape()
    for step in plan.body.steps:
        _Reader(root, {}).step(step)
    return root.fields


def _is_number(node: Node) -> bool:
    """Tell whether a value can only be a number. `+` also joins texts and lists."""
    match node:
        case Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Arithmetic(rest=rest):
            return any(operator != "+" for operator, _ in rest)
    return False


class _Reader:
    def __init__(self, root: Shape, scope: Mapping[str, Shape]) -> None:
        self._root = root
        self._scope = scope

    def step(self, step: Step) -> None:
        for _, formula in formulas(step):
            self._visit(formula.compiled.expression.root)
        inner = self._scope
        match step.work:
            case Agent(prompt=prompt):
                for reference in prompt.references():
                    self._resolve(tuple(reference.name.split(".")))
            case ForEach(source=Formula() as source) | Fold(source=Formula() as source):
                shape = self._shape(source.compiled.expression.root)
                inner = {**self._scope, "item": shape.item() if shape else Shape()}
        for _, part in step.work.parts() if step.work else ():
            _Reader(self._root, inner).step(part)

    def _resolve(self, path: tuple[str, ...]) -> Shape:
        first, *rest = path
        shape = self._root if first == "ctx" else self._scope.get(first) or self._root.member(first)
        for name in rest:
            shape = shape.member(name)
        return shape

    def _shape(self, node: Node) -> Shape | None:
        """Return the shape of a value that is read as it is; None for one that is computed."""
        match node:
            case Path(segments=segments):
                return self._resolve(segments)
            case Get(base=Path(segments=segments), keys=keys):
                return self._resolve((*segments, *keys))
        return None

    def _visit(self, node: Node) -> None:
        match node:
            case Path() | Get():
                self._shape(node)
            case Each(source=source, parameter=parameter, body=body):
                shape = self._shape(source)
                item = shape.item() if shape else Shape()
                _Reader(self._root, {**self._scope, parameter: item})._visit(body)
                self._visit(source)
                return
            case Total(name=name, source=source):
                if shape := self._shape(source):
                    shape.item().is_number |= name == "sum"
            case Join(source=source):
                if shape := self._shape(source):
                    shape.item()
            case Arithmetic(first=first, rest=rest):
                operands = [first, *(operand for _, operand in rest)]
                if _is_number(node) or any(map(_is_number, operands)):
                    self._numbers(operands)
            case Compare(operator=operator, left=left, right=right):
                self._compared(operator, left, right)
        for child in children(node):
            self._visit(child)

    def _numbers(self, operands: list[Node]) -> None:
        for operand in operands:
            if shape := self._shape(operand):
                shape.is_number = True

    def _compared(self, operator: str, left: Node, right: Node) -> None:
        values = [one.value for one in (left, right) if isinstance(one, Constant)]
        flags = any(isinstance(value, bool) for value in values)
        numbers = any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        for side in (left, right):
            shape = self._shape(side)
            if shape is not None and flags:
                shape.is_flag = True
            elif shape is not None and (numbers or operator not in ("==", "!=")):
                shape.is_number = True
