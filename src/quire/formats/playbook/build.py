"""Steps of drafts: the text is put together, and every placeholder gets its place."""

from __future__ import annotations

from collections.abc import Callable

from quire.formats.playbook.drafts import Draft
from quire.formats.playbook.flat import tidied
from quire.formats.playbook.making import quick
from quire.formats.playbook.markers import Marker
from quire.formats.playbook.placeholders import Placeholders
from quire.formats.playbook.syntax import Arm, Condition, Placeholder, Step
from quire.source import Span

_step = quick(Step)
_arm = quick(Arm)
_span = quick(Span)


class StepBuilder:
    """`tidy` says that no line of the text ends in a blank or a tab; `condition` what a marker of a draft compares."""

    def __init__(
        self, text: str, places: Placeholders, tidy: bool, condition: Callable[[Marker, Draft], Condition]
    ) -> None:
        self._text = text
        self._tidy = tidy
        self._condition = condition
        self._places = places

    def build(self, draft: Draft) -> Step:
        arms: tuple[Arm, ...] = ()
        if draft.arms:
            condition = self._condition
            arms = tuple(
                [
                    _arm(
                        condition(arm.marker, draft) if arm.marker.kind != "else" else None,
                        tuple([self.build(step) for step in arm.steps]),
                        arm.marker.span,
                    )
                    for arm in draft.arms
                ]
            )
        ranges = draft.ranges
        found: tuple[Placeholder, ...]
        if draft.plain and draft.title and not arms:
            found = self._places.between(draft.end, draft.stop)
        else:
            found = self._scattered(draft)
        return _step(
            draft.number,
            draft.label,
            draft.title,
            self._content(ranges) if ranges else "",
            draft.prompt,
            draft.output,
            draft.elicitation,
            draft.tool,
            arms,
            found,
            _span(draft.start, draft.end),
        )

    def _scattered(self, draft: Draft) -> tuple[Placeholder, ...]:
        places = [*draft.ranges]
        places += [(d.span.start, d.span.end) for d in (draft.prompt, draft.elicitation, draft.tool) if d]
        places.sort()
        return tuple([found for start, end in places for found in self._places.between(start, end)])

    def _content(self, ranges: list[tuple[int, int]]) -> str:
        """Lines without the space at their ends; blank lines around a line that was taken out become one."""
        text = self._text
        if len(ranges) == 1:
            start, end = ranges[0]
            piece = text[start:end]
            return (piece if self._tidy else tidied(piece)).strip()
        kept: list[str] = []
        blank = False
        for start, end in ranges:
            piece = text[start:end]
            if not self._tidy:
                piece = tidied(piece)
            body = piece.strip("\n")
            if not body:
                blank = blank or piece != ""
                continue
            if kept:
                kept.append("\n\n" if blank or piece[0] == "\n" else "\n")
            kept.append(body)
            blank = piece.endswith("\n\n")
        return "".join(kept).strip()
