"""The steps that `quire show --why` lists add up to the number."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.directives import directive

from quire.analysis.amounts import total
from quire.library.document import load
from quire.runs.proven import prove_document
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

NUMBERS = ("model_calls", "tool_calls", "questions", "threads", "input_tokens", "output_tokens", "money")
SCHEMA = "schema: S\nfields:\n  a: {type: string}\n---\n"
ASKS = """pipeline: p
steps:
  - agent: {prompt: "One {ctx.doc}", schema: S, capabilities: {tools: []}, output: a}
  - for_each:
      over: ctx.rows
      on_error: retry(1)
      do: {agent: {prompt: "Look at {item} and {ctx.a}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
"""
PLAYBOOK = '# P\n\n## STEP 1: One\n\nSay.\n\n## STEP 2: Two\n\nSay more.\n\n@output(x, extract:"a")\n'
DIRECTIVE = directive(
    "look",
    "<execute><tool>rye.file-system.read</tool></execute>",
    '<process><step name="look"><action>Look.</action></step></process>',
    category="",
    tier="general",
    meta='<limits turns="3" tokens="1000" />',
)


USES = """pipeline: q
dialect: quire
steps:
  - agent: {prompt: Look, schema: S, turns: 2, output: a}
  - repeat:
      do: {for_each: {items: [1, 2], on_error: retry(1), do: {tool: {name: ask, args: {prompt: hi}}},
           collect: {tool: {name: file__read, args: {path: a}}}}}
      until: "false"
      max: 4
      on_max: keep
  - call: {pipeline: asking, pass: {x: "1"}}
"""
ASKING = "pipeline: asking\nsteps:\n  - tool: {name: ask, args: {prompt: hi}}\n"
LAUNCHING = DIRECTIVE.replace(
    "<tool>rye", "<pipeline>asking</pipeline><directive>look</directive><tool>ask</tool><tool>rye"
).replace("<limits ", '<limits spawns="2" depth="2" ')


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.yaml", SCHEMA + ASKS),
        ("p.playbook.md", PLAYBOOK),
        ("look.md", DIRECTIVE),
        ("q.yaml", SCHEMA + USES),
        (".ai/directives/look.md", LAUNCHING),
    ],
)
def test_the_shares_of_steps_add_up(tmp_path: Path, name: str, text: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "quire.toml").write_text('[models.prices."ollama:a"]\ninput = 3.0\noutput = 15.0\nwindow = 9000\n')
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/asking.yaml").write_text(ASKING)
    (tmp_path / "quire.toml").write_text('[agents.default]\ntools = ["file__read", "ask"]\n')
    settings = load_settings(find_workspace(tmp_path), {"QUIRE_HOME": str(home)})
    found = prove_document(load(tmp_path / name), settings, model="ollama:a", today=datetime.date(2026, 1, 1))
    compared = [one for one in found.quantities if one.name in NUMBERS]
    assert len(compared) == len(NUMBERS)
    for one in compared:
        assert total(part.whole for part in found.shares(one.name)) == one.most, one.name
