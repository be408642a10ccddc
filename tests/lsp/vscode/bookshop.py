"""The folder that the window shows: documents of all formats, a test that fails, and two runs that ask."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lsp.vscode.code_server import CodeServer, link_program

PLAYBOOK = """# Reply to a customer

## SYSTEM

You answer customers of a bookshop: short, friendly and true.

## INPUTS

- `message` (text): What the customer wrote
- `tone` (enum: formal, friendly): Tone of voice

## STEP 1: Classify

What kind of message is this?

{{message}}

@output(kind: enum, "question", "complaint")

## STEP 2: Draft

Write a {{tone}} reply to this {{kind}}: {{mesage}}

@output(draft: text)

## STEP 3: Finish

```if kind == "complaint"```

### STEP 3a: Apologise

Put an apology before this reply: {{draft}}

```else```

### STEP 3b: Shorten

Shorten this reply: {{draft}}

```endif```
"""
TEST = """defaults:
  inputs: {message: Where is my book?, tone: friendly}
cases:
  - name: a question is answered shortly
    model: {"1": question, "2": It is on its way to you., "3b": On its way.}
    expect:
      status: completed
      output: On its way.
      named: {kind: question}
  - name: a complaint gets an apology
    inputs: {message: My book is torn.}
    model: {"1": complaint, "2": We send a new one., "3a": Sorry! We send a new one.}
    expect:
      output: We are sorry! We send a new one.
      steps: {"3b": skipped}
  - name: a reply in French
    skip: not yet
    model: {"1": question}
"""
PIPELINE = """pipeline: digest
dialect: quire
description: Sums up a page for every reader.
input:
  readers: {type: list, of: {type: string}, max_items: 20}
  page: {type: string}
steps:
  - for_each:
      over: ctx.readers
      on_error: continue
      do: {agent: {prompt: "Sum up for {item}: {ctx.page}"}}
      collect: {transform: {value: pipe}}
      output: digests
  - tool:
      when: ctx.readers != []
      name: file__write
      args: {path: digests.json, content: !expr json(ctx.digests)}
"""
QUESTION = """# Approve the replies

## STEP 1: Ask

@elicit(select, "When do the replies go out?", "now", "tomorrow")
"""


def write_bookshop(server: CodeServer) -> Path:
    """Write the folder, start two runs that ask, and return the folder."""
    folder = server.place / "bookshop"
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    (folder / "reply.playbook.md").write_text(PLAYBOOK)
    (folder / "reply.test.yaml").write_text(TEST)
    (folder / "digest.yaml").write_text(PIPELINE)
    (folder / "approve.playbook.md").write_text(QUESTION)
    link_program(folder)
    for _ in range(2):
        waits = subprocess.run(
            [folder / ".venv/bin/quire", "run", "approve.playbook.md"],
            cwd=folder,
            env=server.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert waits.returncode == 4, waits.stderr.decode()
    return folder
