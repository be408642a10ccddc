"""A first test of a document has a case for each arm and each answer, fits the document, and expects nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.directives import directive
from tests.given import given
from tests.testing.bench import BOARD, TAGLINE

from quire.formats.test.parse import parse
from quire.library.document import load
from quire.source import Source
from quire.testing.discovery import bench_for
from quire.testing.file_run import FileOptions, run_file
from quire.testing.scaffold import draft_cases, scaffold

SELECT = """pipeline: sort_mail
dialect: quire
input:
  mail: {type: string}
  code: {type: string, pattern: "^[0-9]+[.][0-9]+[.][0-9]+$"}
steps:
  - agent: {prompt: "Sort {ctx.mail}", output: kind}
  - match:
      on: kind
      cases:
        bill: {steps: [{transform: {value: "'paid'"}}]}
        letter: {steps: [{agent: {prompt: Answer it.}}]}
      default: {steps: [{tool: {name: ask, args: {prompt: Keep it?, type: confirm}}}]}
"""

SHAPES = """pipeline: shapes
description: x
steps:
  - tool: {name: file__read, args: {path: !expr ctx.file}, output: page}
  - tool: {name: shell, args: {command: make}, output: made}
  - transform: {value: "made.code + ctx.beds * 2", output: total}
  - transform: {value: "map(ctx.guests, g -> g.name)", output: names}
  - for_each:
      over: ctx.readers
      on_error: abort
      do: {agent: {prompt: "Read {page} as {item.name}"}}
      collect: {transform: {value: pipe}}
"""

# real-work, small things: a fan goes through what a command prints.
ROWS = """pipeline: rows
steps:
  - tool: {name: shell, args: {command: [csv2json, leads.csv]}, output: leads}
  - for_each:
      over: leads
      on_error: abort
      do: {agent: {prompt: "Rate {item.name}"}}
      collect: {transform: {value: pipe}}
"""

CHART = """# Chart

## INPUTS

- `loud` (boolean): Whether it is loud

## STEP 1: Look

@tool(stocks, prices, {"of": "tea"})
@output(prices: json)

## STEP 2: Kind

Which kind of chart fits {{prices}}?

@output(kind: enum, "bar", "line", extract:"kind")

## STEP 3: Draw

```if kind == "bar"```
### STEP 3a: Bars
Draw bars.
```endif```

## ARTIFACTS

type: json
"""

DIRECTIVE = directive(
    "tidy",
    "<execute><tool>rye.file-system.read</tool></execute>",
    "Tidy {input:file}.",
    category="c",
    meta='<limits turns="3" tokens="10000" spend="0.1" />',
    more="""<inputs><input name="file" type="string" required="true">x</input></inputs>
<outputs><output name="topics" type="integer" required="true">x</output></outputs>""",
)

DOCUMENTS = {
    "tagline.playbook.md": TAGLINE,
    "board.yaml": BOARD,
    "chart.playbook.md": CHART,
    "sort_mail.yaml": SELECT,
    "shapes.yaml": SHAPES,
    "rows.yaml": ROWS,
    ".ai/directives/tidy.md": DIRECTIVE,
}


@pytest.fixture(params=DOCUMENTS)
def document(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return written(request.param, tmp_path, monkeypatch)


def written(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIRE_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    (folder / "quire.toml").write_text("")
    return given({name: DOCUMENTS[name]}, folder) / name


def test_the_text_has_no_findings_and_its_cases_are_drafts(document: Path) -> None:
    name = document.name.removesuffix(".playbook.md").removesuffix(".yaml").removesuffix(".md")
    reading = parse(Source.of(scaffold(load(document)), str(document.with_name(f"{name}.test.yaml"))))
    assert reading.diagnostics == () and reading.file is not None
    assert all(case.draft for case in reading.file.cases)
    result = run_file(reading)
    assert result.problems == ()
    assert [[one.finding.code.id for one in case.problems] for case in result.cases] == [["TS013"]] * len(result.cases)


def test_the_cases_run_to_their_end_once_they_are_no_drafts(document: Path) -> None:
    """Every placeholder fits, and every one of them is used."""
    name = document.name.removesuffix(".playbook.md").removesuffix(".yaml").removesuffix(".md")
    text = scaffold(load(document)).replace("expect: todo", "expect: {status: completed, exit: 0}")
    result = run_file(parse(Source.of(text, str(document.with_name(f"{name}.test.yaml")))), FileOptions(coverage=True))
    assert [one.finding.message for case in result.cases for one in case.problems] == []
    assert {one.finding.code.id for one in result.problems} <= {"TS112"}, "nothing but what they do not expect yet"
    assert result.coverage is not None
    unattended = [one for one in result.coverage.missing("arms", "answers") if one.way != "unattended"]
    assert unattended == []


NAMES = {
    "tagline.playbook.md": ["yes", "no"],
    "sort_mail.yaml": ["bill", "letter", "yes", "no"],
}


@pytest.mark.parametrize("name", NAMES)
def test_there_is_a_case_for_each_arm_and_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = draft_cases(bench_for(load(written(name, tmp_path, monkeypatch))))
    said = [f"{draft.answers} {[one.value for one in draft.replies.values()]}" for draft in drafts]
    for word in NAMES[name]:
        assert any(word in one for one in said), said
    assert len({draft.name for draft in drafts}) == len(drafts) < 8


def test_placeholders_can_be_told_from_real_values(document: Path) -> None:
    for draft in draft_cases(bench_for(load(document))):
        texts = [one.value for one in draft.replies.values() if isinstance(one.value, str) and one.value]
        tested = ("bill", "letter", "yes", "no")
        assert all("TODO" in text or text in tested for text in texts)
