"""The questions that each kind of work in a Plan answers about itself.

A kind that contains steps, calls documents or names tools overrides the method; tests/plan/test_work.py compares the
answers with the fields of each class. A question that only one module asks is a `match` there, closed by
`assert_never`.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from msgspec import Struct

if typing.TYPE_CHECKING:
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import Call


class StepWork(Struct, frozen=True):
    """The base of every kind of work. By itself it contains no step, calls no document and names no tool."""

    asks_model: typing.ClassVar[bool] = False
    is_leaf: typing.ClassVar[bool] = False
    """True for the kinds that pipelines have most of, which contain no step and never end a pipeline: a long document
    is searched for ends in little time."""
    ends: typing.ClassVar[bool] = False
    """True for work that ends its pipeline."""
    shares_stores: typing.ClassVar[bool] = False
    """True for work whose steps write the stores around it, and emit events where it does."""
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names that only the steps inside see, by the word of their part of the path. The first word is that of the
    items or rounds. Names of branches are added by `plan/parts.py`."""

    def parts(self) -> tuple[tuple[str, Step], ...]:
        """Return the steps inside, each with its part of the path: `for_each`, `parallel[left]`, `collect`."""
        return ()

    def calls(self) -> tuple[Call, ...]:
        """Return the calls of other documents that it may make.

        A tool call of a playbook may be one too: that depends on which documents there are.
        """
        return ()

    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        """Return the tools that it calls itself, as (connection, tool); a tool without a connection has an empty
        one."""
        return ()
