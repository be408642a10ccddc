"""A playbook, a pipeline and a directive with tests, for the editor."""

from __future__ import annotations

import pytest
from tests.directives import directive
from tests.lsp.editor import Editor

PLAYBOOK = """\
# Visit

## INPUTS

- `place` (string): Where to go
- `mood` (enum: glad, sad): How to sound

## STEP 1: Explain

What is {{place}}?

## STEP 2: Choose

Morning or evening? Be {{mood}}.

@output(time: enum, "morning", "evening", extract:"time")

## STEP 3: Go

```if time == "morning"```

### STEP 3a: Early

Say good morning.

```else```

### STEP 3b: Late

Say good evening.

```endif```

## STEP 4: Ask

@elicit(confirm, "Go there?")
"""
PIPELINE = """\
pipeline: sum
steps:
  - agent: {prompt: "Sum {ctx.doc} up.", output: summary}
  - tool:
      name: file__write
      args: {path: out.txt, content: !expr "ctx.summary"}
      output: written
"""
DIRECTIVE = directive(
    "greet",
    "<execute><tool>rye.file-system.write</tool></execute>",
    "Write to {input:guest}.",
    description="Greet a guest",
    category="house",
    author="desk",
    more="""<inputs><input name="guest" type="string" required="true">who comes</input></inputs>
<outputs><output name="letter" type="string">the letter</output></outputs>""",
)


@pytest.fixture
def house(editor: Editor) -> Editor:
    """An editor whose workspace has a document of each format."""
    editor.write("visit.playbook.md", PLAYBOOK)
    editor.write("sum.yaml", PIPELINE)
    editor.write(".ai/directives/house/greet.md", DIRECTIVE)
    return editor
