"""What an expression reads from outside, known before it is evaluated: inputs are inferred from it, slips found."""

from __future__ import annotations

from dataclasses import dataclass

from quire.expr.syntax import RESERVED, Each, Expression, Get, Node, Path, children
from quire.source import Span


@dataclass(frozen=True, slots=True)
class Read:
    """One place that reads. It is `optional` where a `get` does: that it is missing is no failure."""

    path: tuple[str, ...]
    span: Span
    optional: bool = False

    @property
    def store(self) -> str | None:
        """The name after `ctx`, or a bare name (which may still be a binding of the caller's)."""
        if self.path[0] == "ctx":
            return self.path[1] if len(self.path) > 1 else None
        return None if self.path[0] in RESERVED else self.path[0]


def reads(expression: Expression) -> tuple[Read, ...]:
    """In the order of the text; lambda parameters are no reads."""
    found: list[Read] = []
    stack: list[tuple[Node, frozenset[str]]] = [(expression.root, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Path) and node.segments[0] not in bound:
            found.append(Read(node.segments, node.span))
        elif isinstance(node, Get) and isinstance(node.base, Path) and node.base.segments[0] not in bound:
            found.append(Read(node.base.segments, node.base.span))
            found.append(Read(node.base.segments + node.keys, node.span, optional=True))
            if node.default is not None:
                stack.append((node.default, bound))
        elif isinstance(node, Each):
            stack += [(node.body, bound | {node.parameter}), (node.source, bound)]
        else:
            stack.extend((part, bound) for part in reversed(children(node)))
    return tuple(found)
