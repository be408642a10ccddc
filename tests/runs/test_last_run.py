"""Which run `last` is, and that a refused run leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.errors import Refused
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

PIPELINE = "pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n- call: {pipeline: %s}\n"
DIRECTIVE = """# d

```xml
<directive name="d" version="1.0.0">
  <metadata><description>D</description><category>c</category><author>a</author><model tier="low" />
  <permissions><execute><tool>rye.file-system.read</tool></execute></permissions></metadata>
</directive>
```

Do it.
"""


pytestmark = pytest.mark.usefixtures("here")


async def test_last_is_never_a_launched_child(tmp_path: Path) -> None:
    (tmp_path / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nSay.\n")
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "x"}]))
    own = await runtime.start(load(tmp_path / "p.playbook.md"), {}, RunOptions())
    await runtime.start(load(tmp_path / "p.playbook.md"), {}, RunOptions(reply_to="thread"))
    assert await runtime.find("last") == own
    await runtime.close()


@pytest.mark.parametrize("callee", ["talk", "d"])
async def test_a_run_that_is_refused_for_a_callee_leaves_none(tmp_path: Path, callee: str) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "talk.playbook.md").write_text(
        '# talk\n\n## STEP 1: A\n\n@tool(quire, file__read, {"path": "x"})\n'
    )
    (tmp_path / ".ai" / "directives").mkdir(parents=True)
    (tmp_path / ".ai" / "directives" / "d.md").write_text(DIRECTIVE)
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": {"command": "nope"}}}))
    (tmp_path / "p.yaml").write_text(PIPELINE % callee)
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "x"}]))
    with pytest.raises(Refused):
        await runtime.start(load(tmp_path / "p.yaml"), {}, RunOptions())
    assert await runtime.store.list() == []
    await runtime.close()
