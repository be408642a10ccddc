"""The functions that each format has for editors.

A function stands in a module of the format's folder: `quire.lsp.playbook.hover` has `hover(view, offset)`. A format
without the module has no such answers. Modules are imported when they are first asked.

| module | function | returns |
| --- | --- | --- |
| `index` | `index(view)` | `Index` |
| `hover` | `hover(view, offset)` | `Hover` or None |
| `completion` | `complete(view, offset)` | list of `Completion` |
| `completion` | `resolve(view, what)` | Markdown |
| `signatures` | `signature(view, offset)` | `Signature` or None |
| `decorations` | `tokens(view)` | list of `Token` |
| `decorations` | `hints(view, span)` | list of `Hint` |
| `decorations` | `lenses(view)` | list of `Lens` |
| `actions` | `actions(view, span, findings)` | list of `Action` |
| `formatting` | `format(view, span)` | list of `Edit` |
| `decorations` | `folds(view)` | list of `Fold` |
| `naming` | `name_problem(view, name, new)` | why a new name is not allowed, or an empty text |
| `naming` | `place_edits(view, names, new)` | list of `Edit` for places that get a new name, or why they cannot |
| `file_moves` | `moved(view, new)` | list of `Edit`: what the document says about its own place |
| `file_moves` | `followed(view, moves)` | list of `Edit`: other texts that depend on moved files |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

FORMATS = ("playbook", "pipeline", "directive", "knowledge", "test", "settings")


@lru_cache(maxsize=256)
def function(format: str, module: str, name: str) -> Callable[..., Any] | None:
    """Return a function of a format; None if the format has no such module."""
    place = f"quire.lsp.{format}.{module}"
    if format not in FORMATS or find_spec(f"quire.lsp.{format}") is None or find_spec(place) is None:
        return None
    found: Callable[..., Any] | None = getattr(import_module(place), name, None)
    return found


class ModuleLoads:
    """Loads the modules of hovers and completions before they are asked for, a few at a time."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._waiting: deque[Callable[[], object]] = deque()

    def want(self, format: str) -> bool:
        """Have the modules of a format loaded, unless they are already. Return False if nothing is to be loaded."""
        if format and format not in self._wanted:
            from quire.lsp.capabilities import handler

            self._wanted.add(format)
            for module, name in (("hover", "hover"), ("completion", "complete")):
                self._waiting.append(partial(handler, f"textDocument/{module}"))
                self._waiting.append(partial(function, format, module, name))
        return bool(self._waiting)

    def next(self) -> bool:
        """Load some modules: so few that a request does not wait long. Return False if these were the last ones."""
        load = self._waiting.popleft()
        load()
        return bool(self._waiting)
