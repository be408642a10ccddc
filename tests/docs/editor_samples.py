"""A small workspace with a document of each format, for the table of methods in docs/reference/editor-methods.md.

Each document has something to answer about: a finding, a line that can be formatted, and a name that others use.
"""

from __future__ import annotations

SAMPLES = {
    "playbook": "note.playbook.md",
    "pipeline": "pipelines/main.yaml",
    "directive": ".ai/directives/team/greet.md",
    "knowledge": ".ai/knowledge/team/voice.md",
    "test": "note.test.yaml",
    "settings": "quire.toml",
}
"""The name of the file of each format."""

_PLAYBOOK = """\
# Note

## INPUTS

- `topic` (string): The subject
- `idle` (string): Is not read

## STEP 1: Say

Say something about {{topic}} and {{nothing}}.

  @output(kind:text)

## STEP 2: Look

@prompt(file:texts/tone.md)

## STEP 3: Call

@tool(quire, other, {"size": 1})
"""
_CALLER = """\
# Caller

## STEP 1: Call

@tool(quire, note, {"topic": "bees"})
"""
_PIPELINE = """\
pipeline: main
dialect: quire
steps:
  - transform: {value: "count(ctx.items) + 1", output: size}
  - call:   {pipeline: other, pass: [size]}
  - agent: {prompt: "Say {size}.", model: low, output: said}
  - agent: {prompt: !file texts/say.md, output: more}
"""
_CALLING = """\
pipeline: calling
dialect: quire
steps:
  - call: {pipeline: main, pass: [items]}
"""
_OTHER = """\
pipeline: other
dialect: quire
steps:
  - transform: {value: ctx.size + ctx.more, output: a}
"""
_DIRECTIVE = """\
# Greet

```xml
<directive name="greet" version="1.0.0" extends="team/base">
  <metadata>
    <description>Write a greeting</description>
    <category>team</category>
    <author>ada</author>
    <model tier="low" />
    <limits   turns="6" />
    <permissions>
      <execute>
        <tool>rye.file-system.*</tool>
        <directive>team/base</directive>
      </execute>
    </permissions>
    <context>
      <system>team/voice</system>
    </context>
  </metadata>
  <inputs>
    <input name="guest" type="string" required="true">A guest</input>
  </inputs>
</directive>
```

<process>
  <step name="write">
    Greet {input:guest} and {input:nobody}.
    `rye_execute(item_type="tool", item_id="rye/file-system/write", parameters={"path": "a.md", "content": "b"})`
  </step>
</process>
"""
_BASE = """\
# Base

```xml
<directive name="base" version="1.0.0">
  <metadata>
    <description>Common ground</description>
    <category>team</category>
    <author>ada</author>
    <model tier="low" />
    <permissions>
      <execute>
        <directive>team/greet</directive>
      </execute>
    </permissions>
    <hooks>
      <hook id="greet" event="after_complete">
        <action primary="execute" item_type="directive" item_id="team/greet">
          <param name="guest">Ada</param>
        </action>
      </hook>
    </hooks>
  </metadata>
</directive>
```

Work.
"""
_VOICE = """\
```yaml
name: voices
title: How we speak
version: "1.0.0"
entry_type: reference
category: team
references:
  - team/rules
```

# Voice

Be warm. `team/rules` says more.
"""
_RULES = """\
```yaml
name: rules
title: House rules
version: "1.0.0"
entry_type: reference
category: team
```

Shoes stay at the door.
"""
_TEST = """\
document: note.playbook.md
cases:
  - expect:
      named: {kind: "Yes"}
    name: first
    inputs: {topic: bees, idle: x}
    model: ["Yes", "No"]
  - name: second
    inputs: {topic: bees}
    model: ["Yes", "No"]
"""
_SETTINGS = """\
[agents.reviewer]
model = "low"

[models.tiers]
low = {model = "openai:gpt-4o-mini"}

[playbooks."note.playbook.md"]
agent = "reviewer"

[pipelines.entries.billing]
path = "pipelines/main.yaml"
"""
WRONG_SETTINGS = f'{_SETTINGS}\n[runz]\nexpiry = "7d"\n'
"""Settings with a finding. The documents of a workspace with these are checked alone, so only one sample has them."""
FILES = {
    "note.playbook.md": _PLAYBOOK,
    "caller.playbook.md": _CALLER,
    "texts/tone.md": "Be warm about {{topic}}.\n",
    "pipelines/main.yaml": _PIPELINE,
    "pipelines/other.yaml": _OTHER,
    "pipelines/calling.yaml": _CALLING,
    "pipelines/texts/say.md": "Say it.\n",
    ".ai/directives/team/greet.md": _DIRECTIVE,
    ".ai/directives/team/base.md": _BASE,
    ".ai/knowledge/team/voice.md": _VOICE,
    ".ai/knowledge/team/rules.md": _RULES,
    "note.test.yaml": _TEST,
    "quire.toml": _SETTINGS,
}
