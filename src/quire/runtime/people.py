"""Who answers when a document asks."""

from __future__ import annotations

from collections.abc import Mapping

from quire.engine.ask import unattended_answer
from quire.engine.ports import People
from quire.engine.records import Question


class Nobody:
    """Nobody is here: questions wait in the inbox."""

    async def ask(self, question: Question, problem: str) -> str | None:
        return None


class Unattended:
    """Nobody can be asked: the default, else yes, the first option, nothing."""

    async def ask(self, question: Question, problem: str) -> str | None:
        if problem:
            return None
        return unattended_answer(question.kind, question.options, question.default)


class GivenAnswers:
    """Answers that were given with the run, by step label or by path, each used once; then somebody else is asked."""

    def __init__(self, answers: Mapping[str, str], others: People) -> None:
        self._answers = dict(answers)
        self._others = others

    async def ask(self, question: Question, problem: str) -> str | None:
        for name in (question.path, question.label):
            if name in self._answers:
                return self._answers.pop(name)
        return await self._others.ask(question, problem)
