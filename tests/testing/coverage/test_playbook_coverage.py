"""Decisions of playbooks, and the walks that take them."""

from __future__ import annotations

import pytest
from tests.testing.coverage.measured import decisions, labels, missing
from tests.testing.scripted import Scripted
from tests.walks.test_pure_walk import INPUTS, REPLIES, TAGLINE

from quire.source import Source

BRANCHES = """# B

## INPUTS

- `tone` (string: dry): The tone

## STEP 1: Say

Say it.

@output(said)

## STEP 2: Sort

```if said == "a"```
```elif said == "b"```

### STEP 2a: B

Do b.

```endif```

## STEP 3: Pick

@elicit(select, "Which?", "left", "{{said}}", default:"left")

## STEP 4: Free

@elicit(input, "Words?")

```if tone == "dry"```

### STEP 4a: Dry

Dry.

```else```

### STEP 4b: Wet

Wet.

```endif```
"""


def test_decisions_have_the_words_and_lines_of_the_author() -> None:
    assert labels(TAGLINE, "steps") == [
        "step 1: Draft",
        "step 2: Check",
        "step 3: Finish",
        "step 3a: Polish",
        "step 3b: Again",
    ]
    assert labels(TAGLINE, "arms") == ['step 3: if __elicit_step_2 == "yes"', "step 3: else"]
    assert labels(TAGLINE, "answers") == ["step 2 answered yes", "step 2 answered no"]
    assert labels(TAGLINE, "prompts") == [f"step {one}: its prompt is looked at" for one in ("1", "3a", "3b")]
    source = Source.of(TAGLINE)
    lines = {one.label: source.line(source.position(one.span.start).line) for one in decisions(TAGLINE)}
    assert lines["step 3: else"] == "```else```"
    assert lines["step 2 answered no"].startswith("@elicit(confirm")
    assert lines["step 3a: Polish"] == "### STEP 3a: Polish"


def test_ids_are_distinct_and_do_not_depend_on_words() -> None:
    ids = [one.id for one in decisions(BRANCHES)]
    assert len(set(ids)) == len(ids)
    other = BRANCHES.replace("Pick", "Choose").replace("Say it.", "Speak.").replace("left", "right")
    assert [one.id for one in decisions(other)] == ids


def test_two_answers_take_both_arms() -> None:
    yes, no = ((INPUTS, Scripted(REPLIES, people={"2": answer})) for answer in ("yes", "no"))
    assert missing(TAGLINE, "arms", yes) == ["step 3: else"]
    assert missing(TAGLINE, "answers", yes) == ["step 2 answered no"]
    assert missing(TAGLINE, "steps", yes) == ["step 3b: Again"]
    assert missing(TAGLINE, "conditions", yes) == ['step 3: `__elicit_step_2 == "yes"` false']
    for kind in ("arms", "answers", "steps", "conditions"):
        assert missing(TAGLINE, kind, yes, no) == []


@pytest.mark.parametrize(
    ("said", "arms", "steps"),
    [
        ("a", ['step 2: elif said == "b"', "step 2: no branch (without else)"], ["step 2a: B"]),
        ("b", ['step 2: if said == "a"', "step 2: no branch (without else)"], []),
        ("c", ['step 2: if said == "a"', 'step 2: elif said == "b"'], ["step 2: Sort", "step 2a: B"]),
    ],
)
def test_an_empty_arm_and_a_missing_else_are_told_apart(said: str, arms: list[str], steps: list[str]) -> None:
    case = ({"tone": "dry"}, Scripted({"1": said}, people={"3": "left", "4": "x"}))
    assert [one for one in missing(BRANCHES, "arms", case) if one.startswith("step 2")] == arms
    assert [one for one in missing(BRANCHES, "steps", case) if one.startswith("step 2")] == steps


def test_a_question_waits_and_nothing_behind_it_is_taken() -> None:
    case = ({"tone": "dry"}, Scripted({"1": "b"}))
    assert missing(BRANCHES, "answers", case) == labels(BRANCHES, "answers")
    assert "step 4: Free" in missing(BRANCHES, "steps", case)


def test_options_count_by_their_place_and_free_text_as_answered() -> None:
    case = ({"tone": "wet"}, Scripted({"1": "b"}, people={"3": "b", "4": "words"}))
    assert missing(BRANCHES, "answers", case) == ["step 3 answered left", "step 3 without a person: its default"]
