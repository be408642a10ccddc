"""Kinds of values, and limits on the length, depth, work and size of expressions with the operations that enforce them.

The limits are far above normal use, and low enough that a hostile document costs a second or two and some hundred
megabytes, but does not kill the process.

`Run` holds the state of one evaluation. `measure` and `equal` walk whole values. A value built by expressions may
contain the same list in many places: it is small in memory, but huge when written or compared. So both walks count
every place and stop at a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

from quire.expr.errors import EvalError
from quire.values import MAX_DEPTH, Value, copy

if TYPE_CHECKING:
    from quire.source import Span

MAX_LENGTH = 100_000
"""Maximum number of characters of an expression."""

MAX_NESTING = 100
"""Maximum depth of nested brackets and of nested nodes of the tree.

Compiler and closures need one Python frame for each level.
"""

MAX_STEPS = 5_000_000
"""Maximum number of nodes that one evaluation may visit.

Work done by C loops is charged at a fraction, by the size of the data.
"""

MAX_ITEMS = 1_000_000
"""Maximum number of items in one list, and in all lists and maps of a result together."""

MAX_TEXT = 16_000_000
"""Maximum number of characters in one text, and in all texts of a result together."""

MAX_DIGITS = 4_300
"""Maximum number of digits of an integer. Python refuses to write longer ones, so they could not be stored."""

MAX_BITS = 14_284
"""Largest number of bits that never needs more than `MAX_DIGITS` digits."""


ATOMS = frozenset({type(None), bool, int, float})
FLAT = ATOMS | {str}
NUMBERS = frozenset({int, float})
"""A bool is not one of them, although Python treats it as an int. So types are compared; `isinstance` is never used."""

ORDERED = NUMBERS | {bool}


# A tuple and not a union, which Python would build anew each time that it is asked for.
_LISTS = (list, tuple)


def is_list(value: object) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, _LISTS)


def is_map(value: object) -> TypeGuard[Mapping[str, Value]]:
    # The check against the abstract class is slow and rarely needed.
    return isinstance(value, dict) or (type(value) not in FLAT and isinstance(value, Mapping))


def kind(value: object) -> str:
    """Return the name of a value's kind, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if is_list(value):
        return "a list"
    return "a map" if is_map(value) else f"a Python {type(value).__name__}"


def python_text(value: Value) -> str:
    """Return the value as Python's `str()` writes it: `True`, `None`, `2.0`, `['a', 1]`.

    Labels of `match` are compared with this text. Raises `InvalidValue` for values that could not be stored either.
    """
    if isinstance(value, str):
        return value
    # Integers are copied too: Python refuses to write the longest ones, and the codec raises our own error for them.
    return str(value) if value is None or isinstance(value, bool | float) else str(copy(value))


class Run:
    """State of one evaluation: the names it can read, and the work it may still do.

    After an error it is discarded, so its state is never restored.
    """

    __slots__ = ("left", "names", "stores")

    def __init__(self, names: Mapping[str, Any], stores: Mapping[str, Any]) -> None:
        self.names = names
        self.stores = stores
        self.left = MAX_STEPS

    def charge(self, steps: int, span: Span) -> None:
        """Subtract steps from the remaining work. Raises `EvalError` when none is left."""
        self.left -= steps
        if self.left < 0:
            message = f"the expression takes more than {MAX_STEPS:,} steps"
            raise EvalError(message, span, "work on fewer items, or do a part of it in a step of its own")


Closure: TypeAlias = Callable[[Run], Any]
"""A compiled node. Its result is a `Value`; `Any` saves a cast at every use of an already checked one."""


_LONG = 1_000
"""Texts up to this length are compared in the time of one step."""

_MANY = 32
"""Lists up to this length are measured again instead of remembering their sizes, because that is faster."""


class Sizes(NamedTuple):
    """Size of a value: items of all its lists and maps, characters of all its texts and keys, and levels of nesting."""

    items: int = 0
    characters: int = 0
    depth: int = 0


_FLAT = Sizes()


class Measured(list[Value]):
    """A list that remembers its sizes.

    Without it, an accumulator that grows by one element at each step of a fold would be measured whole at each step.
    """

    __slots__ = ("sizes",)
    sizes: Sizes


def measure(value: object, span: Span) -> Sizes:
    """Return the sizes of a value. Raises `EvalError` if it is too large to be stored."""
    if type(value) in FLAT:
        return _FLAT
    try:
        return _within(_walk(value, span), span)
    except TypeError:
        raise EvalError("the result holds a map with a key that is not text", span) from None


def _walk(value: object, span: Span) -> Sizes:
    """Measure a value level by level. Stops early once a limit is exceeded; the returned sizes then show that."""
    items = characters = depth = deepest = 0
    level: list[Any] = [value]
    while level and depth < MAX_DEPTH:
        depth += 1
        deeper: list[Any] = []
        for holder in level:
            its = type(holder)
            parts: Collection[Any]
            names: Collection[str]
            if its is list:
                parts = holder
            elif its is dict:
                for name in holder:
                    characters += len(name)
                parts = holder.values()
            elif its is Measured:
                items += holder.sizes.items
                characters += holder.sizes.characters
                deepest = max(deepest, depth - 1 + holder.sizes.depth)
                continue
            else:
                parts, names = _parts(holder, span)
                characters += sum(map(len, names))
            items += len(parts)
            for part in parts:
                its = type(part)
                if its is str:
                    characters += len(part)
                elif its not in ATOMS:
                    deeper.append(part)
            if items > MAX_ITEMS or characters > MAX_TEXT:
                return Sizes(items, characters, depth)
        level = deeper
    if level:
        depth += 1
    return Sizes(items, characters, depth if depth > deepest else deepest)


def _parts(holder: object, span: Span) -> tuple[Collection[Any], Collection[str]]:
    if is_list(holder):
        return holder, ()
    if is_map(holder):
        return list(holder.values()), holder
    if isinstance(holder, str | int | float):
        return (), ()
    raise EvalError(f"the result holds {kind(holder)}, which is not a value", span)


def concatenate(left: Sequence[Value], right: Sequence[Value], run: Run, span: Span) -> Sequence[Value]:
    """Return the concatenation of two lists. Raises `EvalError` if the result is too large."""
    length = len(left) + len(right)
    if length > MAX_ITEMS:
        raise EvalError(f"the list has more than {MAX_ITEMS:,} items", span)
    run.charge(length >> 1, span)
    if length <= _MANY:
        return [*left, *right]
    left_sizes, right_sizes = _sizes(left, run, span), _sizes(right, run, span)
    both = Measured(left)
    both.extend(right)
    depth = max(left_sizes.depth, right_sizes.depth)
    both.sizes = _within(
        Sizes(left_sizes.items + right_sizes.items, left_sizes.characters + right_sizes.characters, depth), span
    )
    return both


def equal(left: object, right: object, run: Run, span: Span) -> bool:
    """Compare two JSON values deeply, as Python does: `1 == true`, `1 == 1.0`, and the order of keys is ignored."""
    if type(left) in ATOMS or type(right) in ATOMS:
        return bool(left == right)
    pairs = [(left, right)]
    while pairs:
        first, second = pairs.pop()
        if first is second:
            continue
        if is_map(first):
            if not is_map(second) or len(first) != len(second):
                return False
            run.charge(4 + 4 * len(first), span)
            for key, part in first.items():
                if key not in second:
                    return False
                pairs.append((part, second[key]))
        elif is_list(first):
            if not is_list(second) or len(first) != len(second):
                return False
            run.charge(4 + 4 * len(first), span)
            pairs.extend(zip(first, second, strict=True))
        else:
            if isinstance(first, str) and isinstance(second, str):
                charge_texts(first, second, run, span)
            if first != second:
                return False
    return True


def charge_texts(left: str, right: str, run: Run, span: Span) -> None:
    """Charge the cost of comparing two texts."""
    if len(left) > _LONG:
        run.charge(min(len(left), len(right)) >> 6, span)


def _sizes(value: Sequence[Value], run: Run, span: Span) -> Sizes:
    if type(value) is Measured:
        return value.sizes
    sizes = measure(value, span)
    run.charge(sizes.items, span)
    return sizes


def _within(sizes: Sizes, span: Span) -> Sizes:
    items, characters, depth = sizes
    if items > MAX_ITEMS:
        raise EvalError(f"the result has more than {MAX_ITEMS:,} items", span)
    if characters > MAX_TEXT:
        raise EvalError(f"the result has more than {MAX_TEXT:,} characters", span)
    if depth > MAX_DEPTH:
        raise EvalError(f"the result is nested deeper than {MAX_DEPTH} levels", span)
    return sizes
