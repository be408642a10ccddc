"""What the artifact of a playbook is: the last output, without what was only there for `extract`, without a fence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from quire.cli import main

FENCED = '```json\n{"a": 1}\n```'
PAGE = '# P\n\n## STEP 1: Only\n\nJudge.\n\n@output(level, extract:"level")\n'
ARM = """# P

## STEP 1: Only

@output(level, extract:"level")

```if x == "a"```
### STEP 1a: A
Judge.
```else```
### STEP 1b: B
Judge.
```endif```
"""
TAIL = '{"level": "high"}'


@pytest.mark.parametrize(
    ("page", "reply", "artifact", "level", "warns"),
    [
        (PAGE, f"Bad.\n\n{TAIL}", "Bad.", "high", False),
        (PAGE, f"Bad.\n\n```json\n{TAIL}\n```", "Bad.", "high", False),
        (PAGE, TAIL, TAIL, "high", False),
        (PAGE, "No object.", "No object.", "No object.", True),
        (ARM, f"Bad.\n\n{TAIL}", "Bad.", "high", False),
        (PAGE + "\n## ARTIFACTS\n\ntype: json\n", f"[1]\n{TAIL}", "[1]", "high", False),
        (PAGE + "\n## ARTIFACTS\n\ntype: json\n", f"Prose.\n{TAIL}", "Prose.", "high", True),
        (PAGE + "\n## ARTIFACTS\n\ntype: json\n", TAIL, TAIL, "high", False),
    ],
)
async def test_what_was_asked_for_by_extract_is_no_part_of_the_artifact(
    workspace: Path, page: str, reply: str, artifact: str, level: str, warns: bool
) -> None:
    Path("page.md").write_text(page)
    running = quire.run("page.md", model=quire.ScriptedModel([reply]))
    warned = [event async for event in running if event.type == "warning"]
    result = await running
    assert (result.artifact, result.output, result.named["level"]) == (artifact, reply, level)
    assert bool(warned) == warns


async def test_later_steps_see_the_whole_reply(workspace: Path) -> None:
    Path("page.md").write_text(PAGE + "\n## STEP 2: Next\n\nGo on.\n")
    script = [{"reply": f"Bad.\n{TAIL}"}, {"contains": TAIL, "reply": "seen"}, {"default": "not seen"}]
    Path("replies.json").write_text(json.dumps(script))
    assert (await quire.run("page.md", model="script:replies.json")).output == "seen"


JSON_PAGE = "# P\n\n## STEP 1: Only\n\nGive it.\n\n## ARTIFACTS\n\ntype: json\n"


@pytest.mark.parametrize(("reply", "text", "warns"), [(FENCED, '{"a": 1}\n', False), ("no json", "no json\n", True)])
def test_stdout_a_file_and_the_page_have_the_same(
    workspace: Path, capsys: pytest.CaptureFixture[str], reply: str, text: str, warns: bool
) -> None:
    Path("page.md").write_text(JSON_PAGE)
    Path("replies.json").write_text(json.dumps([reply]))
    for extra in ([], ["--out", "x"]):
        assert main(["run", "page.md", "--script", "replies.json", *extra]) == 0
        told = capsys.readouterr()
        assert told.err.count("it is not JSON") == warns
        assert told.out == ("" if extra else text)
    assert Path("x.json").read_text() == text
    assert main(["runs", "last", "--output"]) == 0
    assert capsys.readouterr().out == text
    assert main(["runs", "last"]) == 0
    page = capsys.readouterr().out
    assert "```" not in page and ("it is not JSON" in page) == warns
