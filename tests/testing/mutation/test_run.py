"""Mutants against cases: the first case that notices a mutant kills it, and a case that looks at more kills more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.testing.scripted import Scripted, start_of, walked
from tests.walks.test_pure_walk import INPUTS, REPLIES, TAGLINE

from quire.engine.requests import HumanRequest
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.source import Source
from quire.testing.mutation.mutants import mutants
from quire.testing.mutation.mutation_run import BaselineCase, Judge, run_mutants

SOURCE = Source.of(TAGLINE, "tagline.playbook.md")
PLAN = read(SOURCE).runnable()


def judge(answer: str, looks: Callable[[Plan, str], object]) -> Judge:
    """A case that expects what the unchanged document does."""
    expected = looks(PLAN, answer)
    return lambda plan: looks(plan, answer) != expected


def output(plan: Plan, answer: str) -> object:
    end = walked(start_of(TAGLINE, INPUTS, plan=plan), Scripted(REPLIES, people={"2": answer}))
    return end.status, end.result["output"] if isinstance(end.result, dict) else None


def steps(plan: Plan, answer: str) -> object:
    end = walked(start_of(TAGLINE, INPUTS, plan=plan), Scripted(REPLIES, people={"2": answer}))
    return output(plan, answer), [(one.type, one.label) for one in end.events if one.type.startswith("step_")]


def prompts(plan: Plan, answer: str) -> object:
    script = Scripted(REPLIES, people={"2": answer})
    end = walked(start_of(TAGLINE, INPUTS, plan=plan), script)
    asked = [one.prompt for one in end.asked.values() if isinstance(one, HumanRequest)]
    return steps(plan, answer), script.prompts, asked


@pytest.mark.parametrize(("looks", "least", "most"), [(output, 0.2, 0.8), (steps, 0.5, 0.99), (prompts, 1.0, 1.0)])
def test_a_case_that_looks_at_more_notices_more(
    looks: Callable[[Plan, str], object], least: float, most: float
) -> None:
    cases = [BaselineCase(answer, judge(answer, looks)) for answer in ("yes", "no")]
    report = run_mutants(PLAN, mutants(PLAN, SOURCE), cases)
    assert least <= report.score <= most
    assert report.total == len(report.killed) + len(report.survivors) == len(mutants(PLAN, SOURCE))


def test_the_first_case_that_notices_is_named_and_the_rest_is_not_run() -> None:
    ran: list[str] = []

    def first(plan: Plan) -> bool:
        return plan is not PLAN

    def second(plan: Plan) -> bool:
        ran.append(plan.title)
        return False

    report = run_mutants(PLAN, mutants(PLAN, SOURCE), [BaselineCase("a", first), BaselineCase("b", second)])
    assert set(report.killed.values()) == {"a"}
    assert len(ran) == 1  # on the unchanged document


def test_a_case_that_fails_on_the_document_itself_is_left_out() -> None:
    cases = [BaselineCase("broken", lambda plan: True), BaselineCase("blind", lambda plan: False)]
    report = run_mutants(PLAN, mutants(PLAN, SOURCE), cases)
    assert (report.cases, report.left_out, report.score) == (
        ("blind",),
        ("broken: it fails on the unchanged document",),
        0.0,
    )


def test_a_document_without_mutants_has_all_of_them() -> None:
    assert run_mutants(PLAN, [], []).score == 1.0


def test_there_is_a_limit_in_time() -> None:
    cases = [BaselineCase("blind", lambda plan: False)]
    report = run_mutants(PLAN, mutants(PLAN, SOURCE), cases, most_seconds=0.0)
    assert (report.total, report.untried) == (0, len(mutants(PLAN, SOURCE)))
