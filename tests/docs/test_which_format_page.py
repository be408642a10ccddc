"""The page on which format to use is tried: its ways to insert a value, and its names of a tool."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import section, text_of
from tests.examples.command import Desk

from quire.tools.builtin import SPECS
from quire.trust.capabilities import canonical, capability, flat_name

PAGE = "docs/start/which-format.md"


def test_the_five_ways_give_the_same_sentence(tmp_path: Path) -> None:
    """Each is put where the page says that it works."""
    playbook, prompt, expression, directive, hook = re.findall(
        r"^\| `((?:!expr \"')?Write to [^`]+)`", text_of(PAGE), re.MULTILINE
    )
    desk = Desk(tmp_path / "work", tmp_path / "home")
    desk.write("a.playbook.md", f"# A\n\n## INPUTS\n\n- `guest` (string): Who\n\n## STEP 1: Write\n\n{playbook}\n")
    desk.write("b.yaml", f'pipeline: b\nsteps:\n  - agent: {{prompt: "{prompt}"}}\n')
    desk.write(
        "c.yaml", f"pipeline: c\nsteps:\n  - tool: {{name: file__write, args: {{path: c, content: {expression}}}}}\n"
    )
    script = desk.script({"default": "Done."})
    for document in ("a.playbook.md", "b.yaml"):
        desk.fine("run", document, "-i", "guest=Ada", "--script", script)
        assert "Write to Ada." in desk.fine("runs", "last", "--prompt", "1")
    desk.fine("run", "c.yaml", "-i", "guest=Ada")
    assert (desk.folder / "c").read_text(encoding="utf-8") == "Write to Ada"
    desk.fine("new", "directive", "team/greet")
    path = desk.folder / ".ai" / "directives" / "team" / "greet.md"
    text = path.read_text(encoding="utf-8")
    assert "</process>" in text
    step = f'<step name="write">\n    {directive} {hook}\n  </step>\n</process>'
    inputs = '<inputs>\n    <input name="guest" type="string" required="true">Who</input>\n  </inputs>'
    text = re.sub(r"<inputs>.*?</inputs>", inputs, text, flags=re.DOTALL)
    path.write_text(text.replace("</process>", step), encoding="utf-8")
    assert "Write to Ada. Write to Ada." in desk.fine("show", "greet", "--prompt", "-i", "guest=Ada")


def test_the_names_of_one_tool() -> None:
    rows = dict(
        re.findall(r"^\| (its id|permission|offered|capability)[^|]*\| `([^`]+)` \|", text_of(PAGE), re.MULTILINE)
    )
    own = canonical("file__read")
    assert rows["its id"] == own
    assert rows["permission"] == own.replace("/", ".")
    assert rows["offered"] == flat_name(own)
    assert rows["capability"] == capability("execute", "tool", own)


def test_every_built_in_tool_is_in_the_table_of_tools() -> None:
    """The list of tools, which is made from the program, has their arguments."""
    rows = re.findall(r"^\| (`\w+`[^|]*) \|", section("docs/guides/tools.md", "## Built-in tools"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(SPECS)
