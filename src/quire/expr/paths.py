"""Read values from the bindings: paths, which fail if a key is missing, and `get`, which does not.

A path is first read with plain subscripts. Only if one of them fails is it walked again, segment by segment, to find
the store that it may refer to or to say what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from quire.expr.errors import EvalError
from quire.expr.kinds import is_list, is_map, kind
from quire.expr.syntax import RESERVED, Path
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.expr.limits import Closure, Run
    from quire.values import Value

_MISSED = (KeyError, TypeError)


def read(path: Path, bound: frozenset[str]) -> Closure:
    """Compile a path. `bound` are the lambda parameters in scope."""
    segments = path.segments
    root = segments[0]

    def carefully(run: Run) -> Value:
        return _carefully(path, run)

    if root not in RESERVED and root not in bound:
        return carefully
    match segments[1:]:
        case ():

            def binding(run: Run) -> object:
                try:
                    return run.names[root]
                except KeyError:
                    return _carefully(path, run)

            return binding
        case (first,):

            def member(run: Run) -> object:
                try:
                    return run.names[root][first]
                except _MISSED:
                    return _carefully(path, run)

            return member
        case (first, second):

            def member_of_member(run: Run) -> object:
                try:
                    return run.names[root][first][second]
                except _MISSED:
                    return _carefully(path, run)

            return member_of_member
        case rest:

            def deeper(run: Run) -> object:
                try:
                    value = run.names[root]
                    for segment in rest:
                        value = value[segment]
                except _MISSED:
                    return _carefully(path, run)
                return value

            return deeper


def get(base: Closure, keys: tuple[str, ...], default: Closure | None) -> Closure:
    """Compile a `get`. It returns the default, or null, if a key is missing or a value is not a map."""

    def safely(run: Run) -> object:
        value: object = base(run)
        # The default is always evaluated: one that fails does so even if it is not needed.
        instead = default(run) if default is not None else None
        for key in keys:
            if not is_map(value) or key not in value:
                return instead
            value = value[key]
        return value

    return safely


def _carefully(path: Path, run: Run) -> Value:
    root = path.segments[0]
    value: Value
    if root in run.names:
        value = run.names[root]
    elif root not in RESERVED and root in run.stores:
        value = run.stores[root]
    else:
        raise _unbound(path, run)
    for at, segment in enumerate(path.segments[1:], 1):
        if not is_map(value):
            raise _no_map(path, at, value)
        if segment not in value:
            raise _absent(path, at, value)
        value = value[segment]
    return value


def _unbound(path: Path, run: Run) -> EvalError:
    root, whole = path.segments[0], ".".join(path.segments)
    about = f"{whole} is absent: " if len(path.segments) > 1 else ""
    if root in RESERVED:
        return EvalError(f"{about}there is no {root} here", path.places[0], _WHERE[root])
    help = did_you_mean(nearest(root, [*_some(run.names), *_some(run.stores)]))
    return EvalError(f"{about}nothing is called {root}", path.places[0], help)


def _no_map(path: Path, at: int, value: Value) -> EvalError:
    holder = ".".join(path.segments[:at])
    message = f"{'.'.join(path.segments)} is absent: {holder} is {kind(value)}, and only a map has members"
    counted = is_list(value) and path.segments[at] in ("length", "len", "size", "count")
    return EvalError(message, path.places[at], f"write count({holder})" if counted else "")


def _absent(path: Path, at: int, value: Mapping[str, Value]) -> EvalError:
    holder, segment = ".".join(path.segments[:at]), path.segments[at]
    close = nearest(segment, _some(value))
    rest = ".".join(path.segments[at:])
    help = did_you_mean(close and f"{holder}.{close}", f"get({holder}, '{rest}') gives null instead of failing")
    return EvalError(f"{'.'.join(path.segments)} is absent: {holder} has no {segment}", path.places[at], help)


_WHERE = {
    "item": "item exists in the do of a for_each or a fold",
    "acc": "acc exists in the do of a fold",
    "ctx": "",
    "pipe": "",
}


def _some(names: Mapping[str, object]) -> list[str]:
    """Return the first names: enough to suggest a correction, few enough that failing stays cheap."""
    return [name for name in islice(names, 200) if isinstance(name, str)]
