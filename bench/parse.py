"""The playbook reader beside PyPI `playbook-md`, on three sets, and its time on hostile lines.

python -m bench.parse
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from playbook_md.parser import parse_playbook  # type: ignore[import-untyped]

from bench.rows import Row, show
from quire.formats.playbook.parse import parse
from quire.source import Source

CORPUS = Path(__file__).parents[2] / "shared" / "conformance" / "corpus" / "playbook"
FASTER = 2.0

PAGE = """# Technical decision

Evaluate a technology with a structured framework, and say yes or no.

## SYSTEM

You are a senior architect. Give balanced answers that rest on evidence. Consider trade-offs, the
maturity of the ecosystem, the skills of the team and the cost of keeping it alive.

## INPUTS

- `technology` (string): What to evaluate
- `criteria` (string): What matters, separated by commas
- `constraints` (text): What the project asks for
- `depth` (enum: quick, thorough): How deep to go

## STEP 1: Requirements

Read the constraints below and list the technical requirements that follow from them:

{{constraints}}

Look at:
- load and growth
- what the team knows already
- the systems it has to work with
- the time there is

@output(requirements)

## STEP 2: Assessment

Rate {{technology}} on each of these: {{criteria}}

```if depth == "thorough"```

### STEP 2a: In depth

Go through each criterion on its own:
- who maintains it, and how that has changed
- which weaknesses were found in the last years
- how it compares with two alternatives
- what moving to it would take

Give a rating from 1 to 5 with a reason for each.

```else```

### STEP 2b: In short

Give a table with one line for each criterion: a rating from 1 to 5 and ten words.

```endif```

## STEP 3: Check

@elicit(confirm, "Does this look right? Go on to the recommendation?")

## STEP 4: Recommendation

Write the recommendation on {{technology}}:
1. yes or no, and how sure you are
2. the main risks, and what to do about each
3. a rough timeline
4. what else to try if the answer is no

Keep it under one page. Name the requirements that decided it.

## ARTIFACTS

type: markdown
"""


def large(steps: int = 800) -> str:
    """A document of about 190 KB."""
    parts = ["# Large\n\nMany steps.\n\n## INPUTS\n\n- `topic` (string): The topic\n"]
    parts += [
        f"## STEP {number}: Part {number} of the report\n\n"
        f"Write part {number} of the report on {{{{topic}}}}.\n\nInclude:\n"
        "- what is known so far\n- what is still open\n- two examples from practice\n\n"
        f"Keep to the tone of the parts before. Do not repeat them.\n\n@output(part_{number})\n"
        for number in range(1, steps + 1)
    ]
    return "\n".join(parts)


def sets() -> dict[str, list[str]]:
    collected = [path.read_text() for path in sorted(CORPUS.glob("*.md")) if path.name != "LICENSES.md"]
    return {"2 KB page": [PAGE], "corpus": collected or [PAGE, large(40)], "190 KB, 800 steps": [large()]}


def hostile() -> dict[str, Callable[[int], str]]:
    return {
        "elicit and spaces": lambda size: "@elicit(input," + " " * size + "x",
        "backticks": lambda size: "`" * size,
        "braces": lambda size: "{" * size,
        "tool and quotes": lambda size: "@tool(" + '"' * size,
        "unclosed fences": lambda size: "```a\n" * (size // 5),
        "nested ifs": lambda size: '```if a == "b"```\n' * (size // 18),
    }


def measure() -> list[Row]:
    rows: list[Row] = []
    for name, texts in sets().items():
        theirs, ours = _side_by_side(texts)
        ratio = theirs / ours
        rows.append(Row(f"parse {name}: times faster than playbook-md", ratio, "x", f">= {FASTER:g}", ratio >= FASTER))
    line = f"# T\n\n## STEP 1: A\n\n@elicit(input,{' ' * 5_000}x\n"
    theirs, ours = _side_by_side([line], 3)
    ratio = theirs / ours
    rows.append(Row("parse a hostile line of 5 KB: times faster", ratio, "x", f">= {FASTER:g}", ratio >= FASTER))
    for name, make in hostile().items():
        once, twice = (_best(make(size)) for size in (95_000, 190_000))
        ratio = twice / max(once, 1e-6)
        ok = ratio < 3 or twice < 0.002
        rows.append(Row(f"hostile, {name}: time for twice the length", ratio, "x", "about 2", ok))
    return rows


def _side_by_side(texts: list[str], rounds: int = 0) -> tuple[float, float]:
    """The best time of each, taken in turns, so that both meet the same noise."""
    theirs = ours = float("inf")
    for _ in range(rounds or max(10, 400_000 // sum(map(len, texts)))):
        start = time.perf_counter()
        for text in texts:
            parse_playbook(text)
        middle = time.perf_counter()
        for text in texts:
            parse(Source.of(text))
        end = time.perf_counter()
        theirs, ours = min(theirs, middle - start), min(ours, end - middle)
    return theirs, ours


def _best(line: str) -> float:
    source = Source.of(f"# T\n\n## STEP 1: A\n\n{line}\n")
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        parse(source)
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    show("parse", measure())
