"""The judge of the killed runs has to notice what it exists for: each bug is shown to it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chaos.judge import Judge
from tests.chaos.sight import Performed, RunSeen, Sight, effect_id

from quire.engine.records import Answer, EffectRecord, Event, Letter, Question, RunRow, Status

RUN, TOOL, ASK = "r1", "1/tool", "2/ask"
HERE = Path("here")


def record(path: str = TOOL, kind: str = "tool", value: str = "noted") -> EffectRecord:
    return EffectRecord(path, kind, "ok", "hash", 1.0, value)


def question(prompt: str = "Sugar?") -> Question:
    return Question(RUN, ASK, "2", "Ask", "confirm", prompt, (), None, "hash", 1.0)


def sight(status: Status = Status.INTERRUPTED) -> Sight:
    """One tool was called by the first process and recorded; a question is open."""
    row = RunRow(RUN, "tea", "playbook", "tea", status, "", 1.0, 1.0, None, 0, 0, 0.0, None, (), 1, {})
    events = [Event("step_started", RUN, 1.0, 1, "1"), Event("effect", RUN, 1.0, 2, TOOL)]
    run = RunSeen(row, {TOOL: record()}, events, [question()], {})
    return Sight([run], (), [Performed(0, "note", effect_id(RUN, TOOL))])


def performed_again(seen: Sight) -> None:
    seen.ledger.append(Performed(1, "note", effect_id(RUN, TOOL)))


def performed_twice_at_once(seen: Sight) -> None:
    seen.ledger += [Performed(1, "note", "new"), Performed(1, "note", "new")]


def lost(seen: Sight) -> None:
    del seen.runs[0].effects[TOOL]


def changed(seen: Sight) -> None:
    seen.runs[0].effects[TOOL] = record(value="other")


def run_lost(seen: Sight) -> None:
    seen.runs.clear()


def gap(seen: Sight) -> None:
    seen.runs[0].events = [*seen.runs[0].events, Event("effect", RUN, 1.0, 4, "3/tool")]


def told_twice(seen: Sight) -> None:
    seen.runs[0].events = [*seen.runs[0].events, Event("step_started", RUN, 1.0, 3, "1")]


def rewritten(seen: Sight) -> None:
    seen.runs[0].events = [Event("effect", RUN, 1.0, 1, "9/tool"), *seen.runs[0].events[1:]]


def wrong_answer(seen: Sight) -> None:
    seen.runs[0].questions = []
    seen.runs[0].answers = {ASK: Answer(ASK, "hash", "no")}


def damaged(seen: Sight) -> None:
    seen.damage = "row 3 missing from index"


def too_many_under_way(seen: Sight) -> None:
    seen.ledger += [Performed(1, "note", "new"), Performed(1, "note", "newer")]


def letter_lost(seen: Sight) -> None:
    seen.letters = ()


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (performed_again, "although its result was recorded"),
        (performed_twice_at_once, "2 times by process 1"),
        (lost, "was recorded and is gone"),
        (changed, "and is now"),
        (run_lost, "the run r1 is gone"),
        (gap, "not numbered one after the other"),
        (told_twice, "was kept 2 times"),
        (rewritten, "not the ones that they were"),
        (wrong_answer, "is stored as 'no'"),
        (damaged, "is damaged"),
        (letter_lost, "a letter is gone"),
        (too_many_under_way, "only 1 can be under way"),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_a_bug_between_two_processes(bug: Callable[[Sight], None], said: str) -> None:
    judge = Judge(1)
    letter = Letter(RUN, "L1", "[pipeline] run L1 …", 1.0)
    judge.look(replace(sight(), letters=(letter,)), 1)
    judge.look(fine := replace(sight(), letters=(letter,)), 2)
    assert judge.problems == []
    bug(fine)
    judge.look(fine, 2)
    assert any(said in problem for problem in judge.problems), judge.problems


def test_a_question_that_is_asked_again() -> None:
    judge = Judge(1)
    judge.look(sight(), 1)
    answered = sight()
    answered.runs[0].questions = []
    answered.runs[0].answers = {ASK: Answer(ASK, "hash", "yes")}
    judge.look(answered, 2)
    assert judge.problems == []
    judge.look(sight(), 3)
    assert judge.problems == [f"{ASK} is asked again after it was answered"]


def test_what_was_under_way_may_happen_again() -> None:
    judge = Judge(1)
    seen = sight()
    seen.runs[0].effects.clear()
    judge.look(seen, 1)
    again = sight()
    again.ledger.append(Performed(1, "note", effect_id(RUN, TOOL)))
    judge.look(again, 2)
    assert judge.problems == []


def ended() -> Sight:
    done = sight(Status.COMPLETED)
    done.runs[0].questions = []
    return done


def other_value(seen: Sight) -> None:
    seen.runs[0].effects[TOOL] = record(value="other")


def another_effect(seen: Sight) -> None:
    seen.runs[0].effects["9/tool"] = record("9/tool")


def unrecorded(seen: Sight) -> None:
    seen.ledger.append(Performed(3, "note", "nowhere"))


def still_asking(seen: Sight) -> None:
    seen.runs[0].questions = [question()]


def one_letter_more(seen: Sight) -> None:
    seen.letters = (Letter(RUN, "L1", "…", 1.0),)


def letter_read_twice(seen: Sight) -> None:
    one_letter_more(seen)
    for turn in (1, 2):
        path = f"thread/turn[{turn}]/letters"
        seen.runs[0].effects[path] = record(path, "load", "[pipeline] run L1 (pipeline 'x') finished: status=ok")


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (other_value, 'is ok "other" None in the end'),
        (another_effect, "undisturbed None"),
        (unrecorded, "is recorded nowhere"),
        (still_asking, "still has questions"),
        (one_letter_more, "1 letters, undisturbed 0"),
        (letter_read_twice, "was read 2 times"),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_a_bug_in_the_end(bug: Callable[[Sight], None], said: str) -> None:
    judge = Judge(1)
    judge.end(ended(), ended(), HERE, HERE)
    assert judge.problems == []
    wrong = ended()
    bug(wrong)
    judge.end(wrong, ended(), HERE, HERE)
    assert any(said in problem for problem in judge.problems), judge.problems
