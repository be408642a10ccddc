"""Calls of other documents from a playbook, as far as `check` can tell."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quire.formats.playbook.check import check
from quire.formats.resolver import CallTarget, Circle, DocumentInterface, DocumentResolver
from quire.plan.nodes import Arguments
from quire.source import Source
from quire.values import Value


def _wrong(name: str, value: Value) -> str:
    return "it is not a number" if name == "nights" and not isinstance(value, int) else ""


class Workspace(DocumentResolver):
    def is_built_in(self, name: str) -> bool:
        return name == "file__read"

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> list[str]:
        wrong = {"file__read": "path is missing", "plot": "the type Figure of figure cannot be given as JSON"}
        right = isinstance(given, dict) and given.keys() <= {"path"}
        return [] if right or tool not in wrong else [wrong[tool]]

    def document(self, name: str) -> DocumentInterface | None:
        known = {
            "room_price": DocumentInterface("pipeline", "room_price", ("nights",), ("nights", "beds"), wrong=_wrong),
            "say": DocumentInterface("directive", "say"),
        }
        return known.get(name)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('@tool(quire, room_price, {"nights": 2})', []),
        ('@tool(quire, room_price, {"nights": {{n}}, "beds": "{{n}}"})', []),
        ('@tool(quire, "room_price", {"nights": "{{n}}"})', []),
        ("@tool(quire, room_price, {{n}})", []),
        ("@tool(quire, say)", []),
        ('@tool(quire, say, {"anything": [1, {"a": "b"}]})', []),
        ('@tool(quire, file__read, {"path": "a"})', []),
        ('@tool(quire, file__read, {"nights": 2})', [("PB232", "file__read: path is missing", "")]),
        (
            '@tool(python, plot, {"figure": 2})',
            [("PB233", "plot: the type Figure of figure cannot be given as JSON", "")],
        ),
        ('@tool(other, room_pric, {"nights": 2})', []),
        (
            '@tool(quire, room_pric, {"nights": 2})',
            [("PB225", "Neither a built-in tool nor a document is named room_pric", "")],
        ),
        (
            "@tool(quire, room_price)",
            [("PB226", "The pipeline room_price needs nights, which it is not given", "")],
        ),
        (
            '@tool(quire, room_price, {"nights": 1, "bed": 2})',
            [("PB226", "The pipeline room_price has no input bed", "did you mean beds?")],
        ),
        (
            '@tool(quire, room_price, {"nights": 1, "colour": 2})',
            [("PB226", "The pipeline room_price has no input colour", "it takes nights, beds")],
        ),
        (
            '@tool(quire, room_price, {"nights": "two"})',
            [("PB226", "The pipeline room_price cannot take this nights: it is not a number", "")],
        ),
        (
            '@tool(quire, room_price, {"nights": [1, 2]})',
            [("PB226", "The pipeline room_price cannot take this nights: it is not a number", "")],
        ),
    ],
)
def test_calls(call: str, found: list[tuple[str, str, str]]) -> None:
    text = f"# T\n\n## INPUTS\n\n- `n` (number): N\n\n## STEP 1: A\n\n{{{{n}}}}\n\n## STEP 2: B\n\n{call}\n"
    diagnostics = check(Source.of(text, "a.playbook.md"), Workspace())
    assert [(one.code.id, one.message, one.help) for one in diagnostics] == found
    assert check(Source.of(text, "a.playbook.md")) == ()


def test_calls_of_sub_steps_are_looked_at() -> None:
    arm = '```if a == "x"```\n\n### STEP 1a: B\n\n@tool(quire, nobody)\n\n```endif```\n'
    text = f"# T\n\n## INPUTS\n\n- `a` (string): A\n\n## STEP 1: A\n\n{arm}"
    (one,) = check(Source.of(text, "a.playbook.md"), Workspace())
    assert (one.code.id, text[one.span.start : one.span.end]) == ("PB225", "@tool(quire, nobody)")


class Circles(Workspace):
    """What was asked for, and one circle for each call that has an answer."""

    def __init__(self, **decided: bool) -> None:
        self._decided = decided
        self.asked: list[str] = []

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        self.asked += [call.name for call in calls]
        known = [call for call in calls if call.name in self._decided]
        return [Circle(call, ("a", call.name), self._decided[call.name]) for call in known]


@pytest.mark.parametrize(("decided", "code", "severity"), [(False, "PB007", "error"), (True, "PB227", "lint")])
def test_a_circle_is_shown_at_the_first_call_that_enters_it(decided: bool, code: str, severity: str) -> None:
    text = "# T\n\n## STEP 1: A\n\n@tool(quire, file__read)\n\n## STEP 2: B\n\n@tool(quire, say)\n\n"
    text += "## STEP 3: C\n\n@tool(quire, say)\n"
    reach = Circles(say=decided)
    (one,) = check(Source.of(text, "a.playbook.md"), reach)
    assert (one.code.id, one.severity, one.message) == (code, severity, "a can reach itself: a → say → a")
    assert one.span.start == text.index("@tool(quire, say)")
    assert reach.asked == ["say"]


def test_where_calls_lead_is_not_asked_without_calls() -> None:
    reach = Circles()
    assert check(Source.of("# T\n\n## STEP 1: A\n\n@tool(quire, file__read)\n", "a.playbook.md"), reach) == ()
    assert reach.asked == []
