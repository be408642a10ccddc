"""Makes nodes of the syntax tree quickly.

A frozen dataclass sets each field through `object.__setattr__`, which is most of the time that reading a document
takes. The twin of a node has the same slots and a plain `__init__`, and the finished object changes its class to that
of the node: Python allows that between classes of one layout. What comes out is an ordinary frozen node.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Node = TypeVar("Node", bound="DataclassInstance")


def quick(node: type[Node]) -> type[Node]:
    """A class that makes objects of `node`; every field must be given, in order."""
    names = [part.name for part in fields(node)]
    body = "".join(f"    self.{name} = {name}\n" for name in names)
    code = f"def __init__(self, {', '.join(names)}):\n{body}    self.__class__ = node\n"
    made: dict[str, object] = {"node": node}
    exec(code, made)  # noqa: S102 - the text is made of the field names of our own dataclasses
    twin = type(f"Quick{node.__name__}", (), {"__slots__": tuple(names), "__init__": made["__init__"]})
    return cast("type[Node]", twin)
