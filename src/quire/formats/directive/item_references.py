"""Find the items that the instructions of a directive call: for advice, never for a decision about permissions.

Calls in backticks, action elements and hooks are considered. An id that contains a reference could mean any item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.resolver import CallTarget
from quire.plan.built_in_tools import ALIASES, FORK, RETURN
from quire.plan.vocabulary import PRIMARIES, adds_context
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Action, Directive

_CALL = re.compile(r"\brye_(execute|fetch|sign)\(([^`\n]{0,600}+)")
_ELEMENT = re.compile(r"<(execute|fetch|sign)\s([^<>]{0,600}+)>")
_ARGUMENT = re.compile(r"""\b(item_type|item_id|scope|query)\s{0,3}=\s{0,3}["']([^"'\n]*+)["']""")
_STARTED = re.compile(r"""["']?directive_id["']?\s{0,3}[:=]\s{0,3}["']([^"'\n]*+)["']""")
_ANY = re.compile(r"[{}$<>*]|\.\.\.|…")
_ALIASES = {alias.replace("/", "."): tool.replace("/", ".") for alias, tool in ALIASES.items()}
_DOCUMENTS = ("pipeline", "playbook", "directive")
_FORK = f"rye.execute.tool.{FORK.replace('/', '.')}"
_ALWAYS = ("rye.execute.tool.rye.agent.threads.internal.", f"rye.execute.tool.{RETURN}")


class Call(Struct, frozen=True):
    """One call in the instructions or in a hook."""

    primary: str
    needs: str
    """The capability that it needs, in its dotted form."""
    open: bool
    """True if `needs` is only the beginning of the capability."""
    span: Span
    document: CallTarget | None = None
    """The document that it runs, if its name is spelled out."""

    def covered_by(self, capability: str) -> bool:
        """Tell whether a grant covers the call, or could."""
        grant = _canonical(capability)
        if self.open:
            return grant.startswith(self.needs) or matches(grant, self.needs) or matches(grant, f"{self.needs}.x")
        return matches(grant, self.needs)

    @property
    def always_allowed(self) -> bool:
        return self.needs.startswith(_ALWAYS)


def matches(grant: str, needed: str) -> bool:
    return fnmatchcase(needed, grant) or (grant.endswith(".*") and fnmatchcase(needed, grant[:-2]))


def calls_of(directive: Directive) -> list[Call]:
    """Return the calls of the instructions: those in the text, and action elements inside the fence."""
    return [*_in_text(directive.body, directive.body_span.start), *(_of_action(action) for action in directive.actions)]


def calls_of_hooks(directive: Directive) -> list[Call]:
    """Return the calls of hooks that need a permission. Knowledge that a hook adds to the first prompt needs none."""
    actions = ((hook.event, action) for hook in directive.hooks for action in hook.actions)
    return [
        _of_action(action) for event, action in actions if action.primary in PRIMARIES and not _brings(event, action)
    ]


def documents_called(directive: Directive) -> list[tuple[CallTarget, Span]]:
    """Return the documents that the instructions and the hooks run, each with the position of the call."""
    calls = [*calls_of(directive), *calls_of_hooks(directive)]
    return [(call.document, call.span) for call in calls if call.document]


def _brings(event: str, action: Action) -> bool:
    return adds_context(event) and ("item_type", "knowledge") in action.attributes and action.primary != "sign"


def _in_text(text: str, base: int) -> Iterator[Call]:
    for pattern in (_CALL, _ELEMENT):
        for match in pattern.finditer(text):
            span = Span(base + match.start(), base + match.end())
            # Parameters may contain words that look like arguments.
            arguments, _, parameters = match[2].partition("parameters")
            thread = _STARTED.search(parameters)
            yield _call(match[1], _ARGUMENT.findall(arguments), span, thread[1] if thread else "")


def _of_action(action: Action) -> Call:
    return _call(action.primary, action.attributes, action.span, dict(action.parameters).get("directive_id", ""))


def _call(primary: str, arguments: Iterable[tuple[str, str]], span: Span, thread: str) -> Call:
    """Build a call. `thread` is the directive that is passed to a tool which starts one."""
    values = dict(reversed(list(arguments)))
    type = values.get("item_type") or values.get("scope") or ("tool" if primary == "execute" else "")
    item = values.get("item_id", "")
    if not type or _ANY.search(type):
        return Call(primary, f"rye.{primary}", True, span)
    if not item or _ANY.search(item):
        return Call(primary, f"rye.{primary}.{type}", True, span)
    needs = _canonical(f"rye.{primary}.{type}.{item.replace('/', '.')}")
    document = CallTarget(item, type) if primary == "execute" and type in _DOCUMENTS else None
    if needs == _FORK and thread and not _ANY.search(thread):
        document = CallTarget(thread, "directive")
    return Call(primary, needs, False, span, document)


def _canonical(capability: str) -> str:
    head, dot, rest = capability.partition(".tool.")
    return f"{head}{dot}{_ALIASES.get(rest, rest)}"
