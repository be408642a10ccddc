"""Documents and a helper for the tests of the runner: write files, run a test, and show its results."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.given import given

from quire.formats.test.parse import parse
from quire.source import read_source
from quire.testing.case_results import CaseResult, FileResult
from quire.testing.file_run import EVERYTHING, FileOptions, run_file

TAGLINE = """
# Tagline

## SYSTEM

You write short lines.

## INPUTS

- `product` (string): The product
- `tone` (enum: warm, dry): The tone

## STEP 1: Draft

Write three taglines for {{product}} in a {{tone}} tone.

@output(best, extract:"best")

## STEP 2: Choose

@elicit(confirm, "Take this one: {{best}}?")

@output(choice)

## STEP 3: Finish

```if choice == "yes"```

### STEP 3a: Polish

Polish this line: {{best}}

```else```

### STEP 3b: Another

Write another line, not {{best}}

```endif```
"""

BOARD = """
schema: Verdict
fields:
  fine: {type: bool}
---
pipeline: board
steps:
  - for_each:
      over: ctx.readers
      on_error: retry(2)
      do:
        agent:
          schema: Verdict
          prompt: "Read {ctx.text} as {item}."
      collect:
        transform: {value: pipe}
      output: verdicts
"""

FILES = """
# Files

## INPUTS

- `name` (string): The file

## STEP 1: Read

@tool(quire, file__read, {"path": "{{name}}"})

@output(text: text)

## STEP 2: Sort

Sort these lines: {{text}}

@output(sorted: text)

## STEP 3: Write

@tool(quire, file__write, {"path": "{{name}}", "content": "{{sorted}}"})
"""

TIDY = """
# Tidy notes

```xml
<directive name="tidy" version="1.0.0">
  <metadata>
    <description>Sort the lines of a file.</description>
    <category></category>
    <author>ada</author>
    <model tier="general"/>
    <limits turns="4" tokens="20000"/>
    <permissions>
      <execute><tool>rye.file-system.*</tool></execute>
    </permissions>
  </metadata>
  <inputs><input name="file" type="string" required="true">The file</input></inputs>
  <outputs><output name="lines" type="integer">How many lines</output></outputs>
</directive>
```

<process>
  <step name="sort"><action>Read {input:file}, sort it, write it back.</action></step>
</process>
"""

DOCUMENTS = {
    "tagline": ("tagline.playbook.md", TAGLINE),
    "board": ("board.yaml", BOARD),
    "files": ("files.playbook.md", FILES),
    "tidy": (".ai/directives/tidy.md", TIDY),
}


def run(
    folder: Path,
    name: str,
    test: str,
    *,
    files: Mapping[str, str] | None = None,
    options: FileOptions = EVERYTHING,
) -> FileResult:
    """Write a document and its test into a folder, run the test, and return the result."""
    path, text = DOCUMENTS[name]
    written = {path: text.lstrip("\n"), "quire.toml": "", **(files or {}), f"{name}.test.yaml": textwrap.dedent(test)}
    given(written, folder)
    reading = parse(read_source(folder / f"{name}.test.yaml"))
    assert [one.message for one in reading.diagnostics if one.code.id < "TS100"] == []
    return run_file(reading, options)


def summary(result: FileResult) -> list[tuple[str, str, list[str]]]:
    """Return the name, the outcome and the codes of each case."""
    return [(case.name, str(case.outcome), [one.finding.code.id for one in case.problems]) for case in result.cases]


def only(result: FileResult) -> CaseResult:
    """Return the one case of a file."""
    assert [one.finding.message for one in result.problems] == []
    assert len(result.cases) == 1
    return result.cases[0]


def told(case: CaseResult) -> list[str]:
    """Return the problems of a case: the code, the line in the test file is left out, and the message."""
    return [f"{one.finding.code.id} {one.finding.message}" for one in case.problems]
