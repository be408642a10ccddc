"""Which run `last` is, and that a refused run leaves nothing behind."""

from __future__ import annotations

import pytest
from tests.directives import directive
from tests.given import given
from tests.play import Play

from quire.errors import Refused

PIPELINE = "pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n- call: {pipeline: %s}\n"
DIRECTIVE = directive("d", "<execute><tool>rye.file-system.read</tool></execute>", category="c")


async def test_last_is_never_a_launched_child(play: Play) -> None:
    given({"p.playbook.md": "# P\n\n## STEP 1: A\n\nSay.\n"})
    own = await play.start("p.playbook.md")
    await play.start("p.playbook.md", reply_to="thread")
    assert await play.runtime.find("last") == own


@pytest.mark.parametrize("callee", ["talk", "d"])
async def test_a_run_that_is_refused_for_a_callee_leaves_none(play: Play, callee: str) -> None:
    talk = '# talk\n\n## STEP 1: A\n\n@tool(quire, file__read, {"path": "x"})\n'
    given({"playbooks/talk.playbook.md": talk, ".ai/directives/d.md": DIRECTIVE, "p.yaml": PIPELINE % callee})
    given({".mcp.json": {"mcpServers": {"s": {"command": "nope"}}}})
    with pytest.raises(Refused):
        await play.start("p.yaml")
    assert await play.runtime.store.list() == []
