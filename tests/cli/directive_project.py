"""A project with signed directives: one that extends another and starts a third, with knowledge, hooks and a script."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.directives import directive
from tests.given import given

from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import Home, keep, own_key
from quire.workspace.locate import user_space

BASE = """# Base

```xml
<directive name="base_deploy" version="1.0.0" extends="rye/agent/core/base">
  <metadata>
    <description>What all deployments have in common</description>
    <category>project/deploy</category>
    <author>team</author>
    <model tier="general" />
    <context>
      <before>project/deploy/rules</before>
      <suppress>rye/agent/core/Identity</suppress>
    </context>
    <hooks>
      <hook id="third" event="after_step">
        <condition path="cost.turns" op="gte" value="3" />
        <action primary="execute" item_type="tool" item_id="rye/file-system/write">
          <param name="path">third.txt</param>
          <param name="content">turn ${turn}</param>
        </action>
      </hook>
    </hooks>
    <permissions>
      <execute><tool>rye.file-system.read</tool></execute>
    </permissions>
  </metadata>
</directive>
```
"""
LEAF = """# Deploy

Deploys to staging.

```xml
<directive name="deploy_staging" version="1.0.0" extends="project/deploy/base_deploy">
  <metadata>
    <description>Deploy the current build to staging</description>
    <category>project/deploy</category>
    <author>team</author>
    <model tier="sonnet" />
    <limits turns="6" tokens="20000" />
    <permissions>
      <execute>
        <tool>rye.file-system.*</tool>
        <tool>rye.agent.threads.*</tool>
        <tool>ask</tool>
      </execute>
      <acknowledge risk="elevated">Starts a helper</acknowledge>
    </permissions>
  </metadata>
  <inputs>
    <input name="target" type="string" required="true">Where to</input>
    <input name="retries" type="integer" default="2">How often</input>
  </inputs>
  <outputs>
    <output name="path" required="true">The report</output>
    <output name="ok" type="boolean">Whether it went well</output>
    <success>Deployed to {input:target}.</success>
    <failure>Could not deploy to {input:target}.</failure>
  </outputs>
</directive>
```

<process><step name="write">Write the report for {input:target}, {input:retries} times at most.</step></process>
"""
NOTE = directive(
    "take_note",
    "<execute><tool>rye.file-system.*</tool></execute>",
    '<process><step name="one">Write {input:text} into notes.txt.</step></process>',
    category="project/notes",
    more="""<inputs><input name="text" type="string" required="true">What</input></inputs>
<outputs><output name="file">Where it is</output></outputs>""",
)
RULES = "```yaml\nname: rules\ntitle: Rules\nversion: 1.0.0\nentry_type: note\n```\nNever on Fridays.\n"
FILES = {
    ".ai/directives/project/deploy/base_deploy.md": BASE,
    ".ai/directives/project/deploy/deploy_staging.md": LEAF,
    ".ai/directives/project/notes/take_note.md": NOTE,
    ".ai/knowledge/project/deploy/rules.md": RULES,
}
LEAF_FILE = ".ai/directives/project/deploy/deploy_staging.md"
PERMISSIONS_LINE = 1 + 1 + LEAF[: LEAF.index("<tool>rye.file-system.*")].count("\n")
"""In the signed file, which has one line more."""


def call(name: str, **given: object) -> dict[str, Any]:
    return {"name": name, "input": given}


SCRIPT: list[dict[str, Any]] = [
    {
        "text": "Writing the report.",
        "tool_calls": [
            call("rye_file_system_write", path="report.txt", content="hello"),
            call("rye_web_fetch", url="https://example.com"),
        ],
        "usage": {"input_tokens": 100, "output_tokens": 20, "cost": 0.01},
    },
    {
        "text": "A helper.",
        "tool_calls": [
            call("rye_agent_threads_thread_directive", directive_id="project/notes/take_note", inputs={"text": "abc"})
        ],
    },
    {"tool_calls": [call("rye_file_system_write", path="notes.txt", content="abc")]},
    {"tool_calls": [call("directive_return", file="notes.txt")]},
    {"text": "Done.", "tool_calls": [call("directive_return", path="report.txt", ok=True)]},
]


def write_directives(folder: Path, *, sign: bool = True, **more: str) -> None:
    """`more` are further files, by their names with `__` for slashes."""
    given({**FILES, **{name.replace("__", "/"): text for name, text in more.items()}}, folder)
    put_script(folder, *SCRIPT)
    if sign:
        keep(Home(user_space()), SigningKey.generate("default"), datetime.now(UTC))
        sign_all(folder)


def sign_all(folder: Path) -> None:
    key = own_key(Home(user_space()))
    for file in sorted((folder / ".ai").rglob("*.md")):
        assert not sign_file(signable(file, folder), key, datetime.now(UTC)), file


def put_script(folder: Path, *entries: object) -> None:
    (folder / "replies.json").write_text(json.dumps(entries))
