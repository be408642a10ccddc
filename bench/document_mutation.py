"""The case of a test file on a changed plan, and a thousand mutants on ten of them.

python -m bench.document_mutation
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.rows import Row, show
from quire.formats.test.parse import parse
from quire.plan.nodes import Plan
from quire.source import read_source
from quire.testing.mutation.mutants import mutants
from quire.testing.mutation.mutation_run import BaselineCase, Judge, baseline_cases, mutate_opened, opened, run_mutants

ROUNDS = 5
MUTANTS, CASES, CORES = 1_000, 10, 2

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
  - name: a no
    answers: {"2": "no"}
    model: {"3b": "Flour power."}
    expect:
      output: Flour power.
      steps: {"3a": skipped, "3b": completed}
      prompts: {"3b": {contains: a bakery}}
"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"quire.toml": "", "tagline.playbook.md": TAGLINE, "tagline.test.yaml": TEST}.items():
            Path(folder, name).write_text(text)
        test = opened(parse(read_source(Path(folder, "tagline.test.yaml"))))
        document = test.bench.document
        plan = document.runnable()
        cases, _ = baseline_cases(test)
        per_case = min(_case_seconds(cases[0].notices, plan) for _ in range(ROUNDS)) * 1e3
        made = mutants(plan, document.source)
        many = (made * (MUTANTS // len(made) + 1))[:MUTANTS]
        # The slowest way: no case notices anything, so every mutant goes through all of them.
        blind = [BaselineCase(str(number), _blind(cases[number % 2].notices)) for number in range(CASES)]
        each = _seconds(lambda: run_mutants(plan, many, blind)) / CORES
        report = mutate_opened(test)
    return [
        Row("the case of a playbook with two calls and a question", per_case, "ms", "≤ 3", per_case <= 3),
        Row(f"{MUTANTS:,} mutants × {CASES} cases, none noticed, on {CORES} cores", each, "s", "≤ 20", each <= 20),
        Row(
            f"its {report.total} mutants × 2 cases, score in percent", report.score * 100, "%", "100", report.score == 1
        ),
    ]


def _blind(notices: Judge) -> Judge:
    return lambda plan: notices(plan) and False


def _case_seconds(notices: Judge, plan: Plan) -> float:
    return _seconds(lambda: [notices(plan) for _ in range(50)]) / 50


def _seconds(work: Callable[[], object]) -> float:
    """Return the time of this process alone: the machine may be busy."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    show("document_mutation", measure())
