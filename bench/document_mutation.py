"""A small case without a loop and a store, and a thousand mutants on ten of them.

python -m bench.document_mutation
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.rows import Row, show
from quire.engine.requests import HumanRequest, ModelRequest
from quire.formats.test.parse import parse
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.source import Source, read_source
from quire.testing.case_rows import expand
from quire.testing.document_under_test import open_document
from quire.testing.mutation.mutants import mutants
from quire.testing.mutation.run import BaselineCase, Judge, run_mutants
from quire.testing.pure_answers import Performance, Performed
from quire.testing.pure_case import PureCase
from quire.testing.pure_start import PureStart
from quire.testing.pure_walk import run_pure

ROUNDS = 7
MUTANTS, CASES = 1_000, 10

TAGLINE = """# Tagline

## INPUTS

- `product` (string): The product
- `tone` (string): The tone

## STEP 1: Draft

Write taglines for {{product}} in a {{tone}} tone.

@output(best, extract:"best")

## STEP 2: Check

@elicit(confirm, "Take this one: {{best}}?")

## STEP 3: Finish

```if __elicit_step_2 == "yes"```

### STEP 3a: Polish

Polish {{best}}.

```else```

### STEP 3b: Again

Write another for {{product}}.

```endif```
"""
REPLIES: Mapping[str, Performance] = {
    label: Performance({"text": text, "model": "script"})
    for label, text in {"1": 'Three. {"best": "Bread."}', "3a": "Bread, then.", "3b": "Flour power."}.items()
}
INPUTS = {"product": "a bakery", "tone": "dry"}


class Case:
    """A case with one answer. It looks at the output, and at the prompts if it is a good test."""

    def __init__(self, answer: str, *, looks: bool) -> None:
        self._answer = Performance(answer)
        self._looks = looks
        self._prompts: list[str] = []
        self._expected: object = None

    def notices(self, plan: Plan) -> bool:
        self._prompts = []
        end = run_pure(PureStart(plan, INPUTS).begin, self.answer)
        seen = (end.status, end.result, self._prompts if self._looks else [])
        self._expected = self._expected or seen
        return seen != self._expected

    def answer(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                self._prompts.append(f"{request.system}\n{request.messages[-1].content}")
                return REPLIES[request.label]
            case HumanRequest():
                self._prompts.append(request.prompt)
                return self._answer
        return None


TEST = """document: tagline.playbook.md
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": 'Three. {"best": "Bread."}'}
cases:
  - name: a yes
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect:
      output: "Bread, then."
      steps: {"3a": completed, "3b": skipped}
      asked: {"2": "Take this one: Bread.?"}
      prompts: {"1": {contains: [a bakery, dry]}, "3a": {contains: Polish Bread.}}
"""


def _of_a_test_file() -> float:
    """Return the time that the case of a test file takes on a plan, with its expectations, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"quire.toml": "", "tagline.playbook.md": TAGLINE, "tagline.test.yaml": TEST}.items():
            Path(folder, name).write_text(text)
        reading = parse(read_source(Path(folder, "tagline.test.yaml")))
        assert reading.file is not None
        bench = open_document(reading.source, reading.file)
        case = PureCase(bench, expand(reading.file.cases[0], bench.folder, [])[0], reading.file)
        assert not case.notices(case.plan)
        return min(_case_seconds(case, case.plan) for _ in range(ROUNDS))


def measure() -> list[Row]:
    source = Source.of(TAGLINE, "tagline.playbook.md")
    plan = read(source).runnable()
    case = Case("yes", looks=True)
    per_case = min(_case_seconds(case, plan) for _ in range(ROUNDS)) * 1e6
    made = mutants(plan, source)
    many = (made * (MUTANTS // len(made) + 1))[:MUTANTS]
    # The slowest way: no case notices anything, so every mutant goes through all of them.
    blind = [BaselineCase(str(number), _blind(number)) for number in range(CASES)]
    all_of_them = min(_seconds(lambda: run_mutants(plan, many, blind)) for _ in range(3))
    looking = [BaselineCase(answer, Case(answer, looks=True).notices) for answer in ("yes", "no")]
    report = run_mutants(plan, made, looking)
    real = _of_a_test_file() * 1e6
    return [
        Row("a playbook with two calls and a question, pure", per_case, "µs", "", True),
        Row("the same, from a test file with its expectations", real, "µs", "≤ 300", real <= 300),
        Row(f"{MUTANTS:,} mutants × {CASES} cases, none noticed", all_of_them, "s", "≤ 20", all_of_them <= 20),
        Row(
            f"its {report.total} mutants × 2 cases, score in percent", report.score * 100, "%", "100", report.score == 1
        ),
    ]


def _blind(number: int) -> Judge:
    case = Case("yes" if number % 2 else "no", looks=False)

    def notices(plan: Plan) -> bool:
        case.notices(plan)
        return False

    return notices


def _case_seconds(case: Case | PureCase, plan: Plan) -> float:
    return _seconds(lambda: [case.notices(plan) for _ in range(200)]) / 200


def _seconds(work: Callable[[], object]) -> float:
    """Return the time of this process alone: the machine may be busy."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    show("document_mutation", measure())
