"""The pipeline that `quire new pipeline` writes: typed replies side by side, put together without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from quire.cli.new import inside, parts_of
from quire.errors import CannotStart

FOLDER: Final = Path("pipelines")
"""Of the workspace: what is there is registered, so it runs and is called by its name."""
SUFFIX: Final = ".yaml"
DESCRIPTION: Final = "Answers several questions on one subject, and says how many of the answers are not sure."
INPUTS: Final = """ -i subject=tea -i 'questions=["what is it?", "who drinks it?"]' """.rstrip()
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_ENDING = re.compile(r"\.ya?ml\Z", re.IGNORECASE)

_PIPELINE = """\
schema: Answer
fields:
  text: {type: string}
  sure: {type: bool}
---
pipeline: NAME
description: DESCRIPTION
steps:
  - for_each:
      over: ctx.questions
      max_parallel: 4
      on_error: retry(2)
      do:
        agent:
          prompt: |
            Answer this question on {ctx.subject} in two sentences: {item}
            Say whether you are sure of it.
          schema: Answer
      collect: {transform: {value: pipe}}
      output: answers
  - transform:
      value: "count(filter(answers, a -> not a.sure))"
      output: doubtful
  - transform:
      value: "{answers: answers, doubtful: doubtful}"
"""


def pipeline(name: str, description: str) -> str:
    # JSON is YAML: whatever somebody calls it, it stays one text.
    return _PIPELINE.replace("pipeline: NAME", f"pipeline: {name}").replace(
        "description: DESCRIPTION", f"description: {json.dumps(description, ensure_ascii=False)}"
    )


def place(name: str) -> Path:
    """Where a pipeline of that name goes: into `pipelines/`, or where the name says. Raises `CannotStart`."""
    *folders, last = parts_of(_ENDING.sub("", name.replace("\\", "/")), name)
    if not _NAME.fullmatch(last):
        raise CannotStart(f"{name}: a pipeline is called with letters, digits, _ and -, and no digit first")
    return inside(Path(*folders or FOLDER.parts, last + SUFFIX), name)
