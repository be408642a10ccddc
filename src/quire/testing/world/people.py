"""The people of a case: answers from its script, by label, way or path, and every question that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.runs.adapters import option_by_number
from quire.testing.observation import SeenQuestion

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.formats.test.syntax import GivenAnswer


class Answers:
    """The answers that a case gives. One that is written once answers every question of its step; those of a list are
    given one after the other, and an empty list gives none."""

    def __init__(self, answers: Mapping[str, tuple[GivenAnswer, ...]]) -> None:
        self._answers = dict(answers)
        self._used: dict[str, int] = {}
        self._given: dict[str, tuple[str, GivenAnswer]] = {}

    def add(self, answers: Mapping[str, tuple[GivenAnswer, ...]]) -> None:
        for name, given in answers.items():
            self._answers[name] = given
            self._used.pop(name, None)

    def take(self, path: str, way: str, label: str) -> GivenAnswer | None:
        """Return the answer to a question; the same one if the question is asked again before it was recorded."""
        name = next((one for one in (path, way, label) if one in self._answers), None)
        if name is None:
            return None
        if path in self._given and self._given[path][0] == name:
            return self._given[path][1]
        listed, at = self._answers[name], self._used.get(name, 0)
        if len(listed) != 1 and at >= len(listed):
            return None
        self._used[name] = at + 1
        found = listed[0] if len(listed) == 1 else listed[at]
        self._given[path] = name, found
        return found

    def refused(self, path: str) -> None:
        """Note that the answer to a question did not fit: the next one, if there is one, is for the same question."""
        self._given.pop(path, None)

    def unused(self) -> list[tuple[str, GivenAnswer]]:
        """Return the answers of the case itself that no question took."""
        return [
            (name, one)
            for name, listed in self._answers.items()
            for number, one in enumerate(listed)
            if number >= self._used.get(name, 0) and not one.shared
        ]


class CasePeople:
    """The `People` port. A question without an answer, or with one that comes later, waits."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.seen: dict[str, SeenQuestion] = {}
        self._by: dict[str, str] = {}
        self._last: dict[str, str] = {}

    async def ask(self, question: Question, problem: str) -> str | None:
        self.see(question)
        if problem:
            self.answers.refused(question.path)
            # An answer that stands for all questions of a step would not fit again.
            given = self.answers.take(question.path, question.way, question.label)
            if given is None or given.value == self._last.get(question.path):
                return None
        else:
            given = self.answers.take(question.path, question.way, question.label)
        if given is None or given.after is not None:
            return None
        self._last[question.path] = given.value
        self._by[question.path] = given.by or "test"
        return option_by_number(question.kind, question.options, given.value)

    def answered_by(self, question: Question) -> str:
        return self._by.get(question.path, "")

    def see(self, question: Question) -> None:
        if question.path not in self.seen:
            self.seen[question.path] = SeenQuestion(
                question.path, question.way, question.kind, question.prompt, question.options
            )
