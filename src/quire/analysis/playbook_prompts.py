"""The parts of a prompt of a playbook step besides its own text: results of earlier steps, and the object that its
reply has to end with."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import AbstractValue, either
from quire.analysis.amounts import Amount, number, total
from quire.analysis.labels import Label, joined
from quire.analysis.scope import Scope, Told
from quire.analysis.written_sizes import text_length

if TYPE_CHECKING:
    from quire.plan.nodes import Capture, Step

ENTRY = 200
"""Bytes around an earlier result in the system text, besides its label and its title."""
BETWEEN = 200
"""Bytes between the parts of a prompt: blank lines, the words before earlier results, and the note of those that are
left out."""


def tell(step: Step, value: AbstractValue, scope: Scope) -> None:
    """Add a result to those that the next model calls read."""
    told, entry = scope.told, entry_of(step, value)
    scope.told = Told(told.label.join(value.label), told.length.plus(entry.length), told.parts)
    for label in dict.fromkeys((step.label, *scope.around)):
        tell_part(label, entry, scope)


def entry_of(step: Step, value: AbstractValue) -> AbstractValue:
    """Return a result as later steps are sent it, with the label and the title of its step."""
    around = number(ENTRY + text_length(step.label) + text_length(step.title))
    return replace(value, length=value.length.plus(around))


def tell_part(name: str, value: AbstractValue, scope: Scope) -> None:
    """Add a result to those that later steps choose by a label, or by a name. All results of a step, and of those in
    its arms, have its label, and are sent together."""
    if scope.keeps_parts:
        told = scope.told
        before = told.parts.get(name)
        if before is not None:
            value = replace(either([before, value]), length=before.length.plus(value.length))
        scope.told = Told(told.label, told.length, {**told.parts, name: value})


def earlier_results(names: tuple[str, ...] | None, step: Step, scope: Scope) -> tuple[Label, Amount]:
    """Return the label and the bytes of the results that a step is sent: all, or those of these names and the answer to
    a question of the step itself."""
    told = scope.told
    if names is None:
        return told.label, told.length
    chosen = [told.parts[one] for one in dict.fromkeys((*names, step.label)) if one in told.parts]
    return joined(one.label for one in chosen), total(one.length for one in chosen)


@lru_cache(maxsize=256)
def closing_lengths(captures: tuple[Capture, ...]) -> tuple[int, int]:
    """Return the bytes of the sentences that ask for the object at the end of a reply, and of its JSON Schema."""
    from msgspec.json import encode  # the engine's own codec takes longer to load than a proof of a small playbook

    from quire.engine.interpreter.playbook.closing import closing_instruction, closing_schema

    try:
        schema = len(encode(closing_schema(captures)))
    except UnicodeEncodeError:  # half a character, in an editor
        schema = text_length(str(closing_schema(captures)))
    return text_length(closing_instruction(captures)), schema
