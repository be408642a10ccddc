"""Measure a foreign JSON Schema before it is compiled, expanded or used for checks.

A small schema can cost unlimited time: references that double at each level, combinations that contain themselves. The
measurement counts but never expands: one pass over the nodes, one over the references. A schema within all limits costs
at most `MAX_EXPANDED` evaluations for each part of a value; for a recursive schema the cost is counted on the value
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from quire.values import Value

MAX_PARTS = 20_000
MAX_DEPTH = 64
MAX_TEXT = 1_000_000
MAX_PATTERNS = 100
LARGEST_NUMBER = 10**18
MAX_EXPANDED = 100_000
MAX_EVALUATIONS = 10_000_000
MAX_PAIRS = 500_000

_SAME_LISTS = ("allOf", "anyOf", "oneOf")
_SAME = ("not", "if", "then", "else")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_BELOW = ("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema")
_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_BELOW_MAPS = ("properties", "patternProperties")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MULTIPLY = frozenset((*_REFERENCES, "unevaluatedProperties", "unevaluatedItems", "pattern", "patternProperties"))
"""A schema without any of these keywords costs no more than the number of its parts."""

Node = Mapping[str, Value]


class TooCostly(ValueError):
    """The schema exceeds a limit, or is not valid; the text says why."""


class Measured(Struct, frozen=True):
    """A schema that may be used."""

    root: Node
    evaluations: int | None
    """Evaluations for each part of a value; None if the schema contains itself."""
    _targets: Mapping[int, tuple[Node, ...]]

    def require_affordable(self, value: Value) -> None:
        """Raise `TooCostly` if checking the value against the schema would take too long."""
        if self.evaluations is not None and self.evaluations * parts_of(value, MAX_EVALUATIONS) <= MAX_EVALUATIONS:
            return
        if self._steps(value) > MAX_EVALUATIONS:
            raise TooCostly("checking these arguments against it takes too many steps")

    def _steps(self, value: Value) -> int:
        """Count the evaluations of a validator that does not cache any of them."""
        counted: dict[tuple[int, int], int] = {}
        way: list[tuple[Node, Value, Iterator[tuple[Node, Value]]]] = [(self.root, value, self._next(self.root, value))]
        while way:
            node, part, rest = way[-1]
            total = counted.setdefault((id(node), id(part)), 1)
            step = next(rest, None)
            if step is None:
                way.pop()
                if way:
                    above = (id(way[-1][0]), id(way[-1][1]))
                    counted[above] = min(counted[above] + total, MAX_EVALUATIONS + 1)
                continue
            steps = counted.get((id(step[0]), id(step[1])))
            if steps is not None:
                counted[id(node), id(part)] = min(total + steps, MAX_EVALUATIONS + 1)
            elif len(counted) >= MAX_PAIRS:
                return MAX_EVALUATIONS + 1
            else:
                way.append((*step, self._next(*step)))
        return counted[id(self.root), id(value)]

    def _next(self, node: Node, value: Value) -> Iterator[tuple[Node, Value]]:
        times = 2 if "unevaluatedProperties" in node or "unevaluatedItems" in node else 1
        for same in (*self._targets.get(id(node), ()), *_same(node)):
            yield from ((same, value),) * times
        if isinstance(value, Mapping):
            yield from self._fields(node, value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            items = list(_nodes(_items(node)))
            yield from ((item, part) for part in value for item in items)

    def _fields(self, node: Node, value: Mapping[str, Value]) -> Iterator[tuple[Node, Value]]:
        fields, patterns = node.get("properties"), node.get("patternProperties")
        for key, part in value.items():
            if isinstance(fields, Mapping) and isinstance(named := fields.get(key), Mapping):
                yield named, part
            if isinstance(patterns, Mapping):
                yield from ((pattern, part) for pattern in _nodes(patterns.values()))
            for name in ("additionalProperties", "unevaluatedProperties"):
                if isinstance(more := node.get(name), Mapping):
                    yield more, part


def measured(schema: object) -> Measured:
    """Measure a schema. Raises `TooCostly` if using it might take too long."""
    if not isinstance(schema, Mapping):
        raise TooCostly("it is not an object")
    parts, keys = _size(schema)
    if keys.isdisjoint(_MULTIPLY):
        return Measured(schema, parts, {})
    nodes, targets = _reached(schema)
    if sum(map(_patterns, nodes)) > MAX_PATTERNS:
        raise TooCostly(f"it has more than {MAX_PATTERNS} patterns")
    if _loops(nodes, targets):
        raise TooCostly("it refers to itself without end")
    return Measured(schema, _expanded(nodes, targets), targets)


def problem_of(schema: object) -> str:
    """Return why a schema cannot be used, else an empty text."""
    try:
        measured(schema)
    except TooCostly as error:
        return str(error)
    return ""


def _size(root: Node) -> tuple[int, set[str]]:
    """Return the number of parts of a schema and the set of all its keys. Raises `TooCostly`."""
    texts = parts = 0
    keys: set[str] = set()
    waiting: list[tuple[Value, int]] = [(root, 1)]
    while waiting:
        part, depth = waiting.pop()
        parts += 1
        if depth > MAX_DEPTH:
            raise TooCostly(f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(part, str):
            texts += len(part)
        elif isinstance(part, (dict, list, Mapping, Sequence)):
            parts += len(part)
            if parts > MAX_PARTS:
                raise TooCostly(f"it has more than {MAX_PARTS:,} parts")
            inner: Iterable[Value] = part
            if isinstance(part, (dict, Mapping)):
                keys.update(part)
                texts += sum(map(len, part))
                inner = part.values()
            waiting.extend([(value, depth + 1) for value in inner])
        elif isinstance(part, int) and abs(part) > LARGEST_NUMBER:
            raise TooCostly("it holds a number beyond all measure")
        if texts > MAX_TEXT:
            raise TooCostly(f"it has more than {MAX_TEXT:,} characters")
    return parts, keys


def _reached(root: Node) -> tuple[list[Node], dict[int, tuple[Node, ...]]]:
    """Return all subschemas, the root first, and the targets of those with references."""
    nodes = [root]
    ids = {id(root)}
    targets: dict[int, tuple[Node, ...]] = {}

    def visit(candidates: Iterable[Node]) -> None:
        for candidate in candidates:
            if id(candidate) not in ids:
                ids.add(id(candidate))
                nodes.append(candidate)

    for node in nodes:
        visit((*_same(node), *_below(node), *_named(node)))
    anchors = {
        anchor: node
        for node in nodes
        for name in ("$anchor", "$dynamicAnchor")
        if isinstance(anchor := node.get(name), str)
    }
    # A reference may point to a place where no schema is expected, and that place may contain more references.
    for node in nodes:
        if any(name in node for name in _REFERENCES):
            targets[id(node)] = tuple(_targets(node, root, anchors))
            visit(targets[id(node)])
        visit((*_same(node), *_below(node), *_named(node)))
    return nodes, targets


def _patterns(node: Node) -> int:
    return ("pattern" in node) + (len(named) if isinstance(named := node.get("patternProperties"), Mapping) else 0)


def _named(node: Node) -> Iterator[Node]:
    for name in ("$defs", "definitions"):
        if isinstance(named := node.get(name), Mapping):
            yield from _nodes(named.values())


def _nodes(values: Iterable[Value]) -> Iterator[Node]:
    return (value for value in values if isinstance(value, Mapping))


def _targets(node: Node, root: Node, anchors: Mapping[str, Node]) -> Iterator[Node]:
    for name in _REFERENCES:
        reference = node.get(name)
        if reference is None:
            continue
        target = _resolved(reference, root, anchors)
        if isinstance(target, Mapping):
            yield target
        elif not isinstance(target, bool):
            shown = reference if isinstance(reference, str) else type(reference).__name__
            raise TooCostly(f"it refers to {shown[:100]!r}, which is not in it; nothing is looked up elsewhere")


def _resolved(reference: Value, root: Node, anchors: Mapping[str, Node]) -> Value:
    if not isinstance(reference, str):
        return None
    own = root.get("$id")
    place = reference.removeprefix(own) if isinstance(own, str) and own else reference
    if place in ("", "#"):
        return root
    if not place.startswith("#"):
        return None
    if not place.startswith("#/"):
        return anchors.get(place[1:])
    from urllib.parse import unquote

    here: Value = root
    for key in unquote(place[2:]).split("/"):
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and key in here:
            here = here[key]
        elif isinstance(here, Sequence) and not isinstance(here, str) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        else:
            return None
    return here


def _same(node: Node) -> Iterator[Node]:
    """Yield the subschemas that apply to the same value as the node."""
    for name in _SAME_LISTS:
        if isinstance(ways := node.get(name), Sequence) and not isinstance(ways, str):
            yield from _nodes(ways)
    yield from _nodes(map(node.get, _SAME))
    for name in _SAME_MAPS:
        if isinstance(named := node.get(name), Mapping):
            yield from _nodes(named.values())


def _items(node: Node) -> Iterator[Value]:
    for name in _ITEMS:
        items = node.get(name)
        if isinstance(items, Sequence) and not isinstance(items, str):
            yield from items
        elif items is not None:
            yield items


def _below(node: Node) -> Iterator[Node]:
    """Yield the subschemas that apply to parts of the value."""
    for name in _BELOW_MAPS:
        if isinstance(named := node.get(name), Mapping):
            yield from _nodes(named.values())
    yield from _nodes(_items(node))
    yield from _nodes(map(node.get, _BELOW))


def _loops(nodes: Sequence[Node], targets: Mapping[int, tuple[Node, ...]]) -> bool:
    """Tell whether checking a value against some schema requires the same check again, without end."""
    return _walked(nodes, targets, below=False) is None


def _expanded(nodes: Sequence[Node], targets: Mapping[int, tuple[Node, ...]]) -> int | None:
    """Return the number of nodes with every reference expanded; None if the schema contains itself."""
    sizes = _walked(nodes, targets, below=True)
    if sizes is None:
        return None
    size = sizes[id(nodes[0])]
    if size > MAX_EXPANDED:
        raise TooCostly(f"with its references written out it has more than {MAX_EXPANDED:,} parts")
    return size


def _walked(nodes: Sequence[Node], targets: Mapping[int, tuple[Node, ...]], *, below: bool) -> dict[int, int] | None:
    """Return the size of each node, counted from the leaves up; None if there is a cycle.

    With `below` only the root is measured, and subschemas for parts of the value count too.
    """
    sizes: dict[int, int] = {}
    for start in nodes[:1] if below else nodes:
        if id(start) in sizes:
            continue
        way = {id(start): (1, _children(start, targets, below))}
        while way:
            at = next(reversed(way))
            size, children = way[at]
            child = next(children, None)
            if child is None:
                sizes[at] = size
                del way[at]
                if way:
                    above = next(reversed(way))
                    way[above] = (min(way[above][0] + size, MAX_EXPANDED + 1), way[above][1])
            elif id(child) in way:
                return None
            elif id(child) in sizes:
                way[at] = (min(size + sizes[id(child)], MAX_EXPANDED + 1), children)
            else:
                way[id(child)] = (1, _children(child, targets, below))
    return sizes


def _children(node: Node, targets: Mapping[int, tuple[Node, ...]], below: bool) -> Iterator[Node]:
    times = 2 if "unevaluatedProperties" in node or "unevaluatedItems" in node else 1
    for same in (*targets.get(id(node), ()), *_same(node)):
        for _ in range(times):
            yield same
    if below:
        yield from _below(node)


def parts_of(value: Value, limit: int) -> int:
    """Count the parts of a value, up to the limit."""
    parts = 0
    waiting: list[Value] = [value]
    while waiting and parts <= limit:
        part = waiting.pop()
        parts += 1
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, Sequence) and not isinstance(part, str):
            waiting.extend(part)
    return parts
