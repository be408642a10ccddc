"""Decisions of a document: every way in which its runs can differ, each with a stable id, a label and a place.

Coverage counts decisions, not lines: a line of prose that ran says little, but an arm that never ran, an answer that
no test gives and a prompt that no test looks at are gaps that an author can close. Decisions of a callee belong to the
file of the callee, so they are not listed for its callers.
"""

from __future__ import annotations

import typing
from typing import assert_never

from msgspec import Struct

from quire.source import NOWHERE, Source, Span

if typing.TYPE_CHECKING:
    from quire.library.document import Document
    from quire.plan.nodes import Plan

Kind = typing.Literal["steps", "arms", "answers", "fans", "errors", "conditions", "hooks", "grants", "prompts"]
KINDS: tuple[Kind, ...] = typing.get_args(Kind)


class Decision(Struct, frozen=True):
    """One way in which a run can go."""

    kind: Kind
    place: str
    """The path of the step in the plan: `2`, `3/case[1]/1`, `1/for_each`, `thread`; `weigh>1` in a file of several
    pipelines."""
    choice: str
    """The question that is decided there, such as `arm`, `ask` or `when[2]`; empty for steps and prompts."""
    way: str
    """This way of deciding it: `1`, `else`, `yes`, `true`."""
    label: str
    """In the words of the author: `step 3: else`."""
    span: Span = NOWHERE

    @property
    def block(self) -> str:
        """The decisions with the same block exclude each other in one evaluation."""
        return decision_id(self.kind, self.place, self.choice)

    @property
    def id(self) -> str:
        return decision_id(self.kind, self.place, self.choice, self.way)


def decision_id(kind: Kind, place: str, choice: str = "", way: str = "") -> str:
    """Return the id of a decision. It is built from positions, so that a renamed title does not change it."""
    return f"{kind}:{place}" + (f":{choice}" if choice else "") + (f"={way}" if way else "")


def document_decisions(document: Document) -> tuple[Decision, ...]:
    """Return the decisions of a document, with those of the pipelines of its file that it calls."""
    from quire.testing.coverage.file_pipelines import file_pipelines

    parts = file_pipelines(document)
    if not parts[0].declared:
        return decisions_of(document.runnable(), document.source)
    from quire.testing.coverage.pipeline_decisions import pipeline_decisions

    return tuple(one for part in parts for one in pipeline_decisions(part.plan, document.source, part.prefix))


def decisions_of(plan: Plan, source: Source) -> tuple[Decision, ...]:
    """Return the decisions of a plan, in the order of its steps. `source` is the text of its whole file."""
    match plan.format:
        case "playbook":
            from quire.testing.coverage.playbook_decisions import playbook_decisions

            return tuple(playbook_decisions(plan, source))
        case "pipeline":
            from quire.testing.coverage.pipeline_decisions import pipeline_decisions

            return tuple(pipeline_decisions(plan, source))
        case "directive":
            from quire.testing.coverage.thread_decisions import thread_decisions

            return tuple(thread_decisions(plan, source))
        case _:
            assert_never(plan.format)
