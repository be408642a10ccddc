"""The ways in which a question can be answered, and the one that an answer is.

A confirmation has two ways and a select one for each option. Free text has one: that it was answered. If the document
names a default, then the run in which no person is asked is a further way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from quire.testing.coverage.decisions import Decision, decision_id
from quire.wording import cut

if TYPE_CHECKING:
    from quire.source import Span

UNATTENDED = "unattended"
"""The author of an answer that a run gave itself."""


def answers(
    place: str,
    label: str,
    kind: Literal["input", "confirm", "select"],
    options: Sequence[tuple[str, Span]],
    default: bool,
    span: Span,
) -> Iterator[Decision]:
    """Yield the answers to a question. `options` are those that the document lists, with their places."""

    def decision(way: str, words: str, at: Span = span) -> Decision:
        return Decision("answers", place, "ask", way, f"step {label} {words}", at)

    if kind == "confirm":
        yield decision("yes", "answered yes")
        yield decision("no", "answered no")
    elif kind == "select" and options:
        for number, (option, at) in enumerate(options, 1):
            yield decision(str(number), f"answered {cut(option, 40, 37)}", at)
    else:
        yield decision("text", "answered")
    if default:
        yield decision(UNATTENDED, "without a person: its default")


def way_of_answer(place: str, answer: str, by: str, kind: str, options: Sequence[str], listed: bool) -> list[str]:
    """Return the ids of the decisions that an answer takes. `listed` says that the document lists the options."""
    if kind == "confirm":
        way = answer
    elif kind == "select" and listed and answer in options:
        way = str(options.index(answer) + 1)
    else:
        way = "text"
    taken = [way] + ([UNATTENDED] if by == UNATTENDED else [])
    return [decision_id("answers", place, "ask", one) for one in taken]
