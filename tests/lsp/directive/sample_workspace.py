"""A workspace with directives and knowledge for the tests of the language server."""

from __future__ import annotations

from pathlib import Path

from tests.given import given

BASE = """\
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
        <tool>rye.file-system.read</tool>
      </execute>
    </permissions>
    <hooks>
      <hook id="bring_voice" event="thread_started">
        <action primary="execute" item_type="knowledge" item_id="team/voice" />
      </hook>
    </hooks>
  </metadata>
</directive>
```

Work.
"""

GREET = """\
# Greet a guest

```xml
<directive name="greet_guest" version="1.0.0" extends="team/base">
  <metadata>
    <description>Write a greeting</description>
    <category>team</category>
    <author>ada</author>
    <model tier="low" />
    <limits turns="6" />
    <permissions>
      <execute>
        <tool>rye.file-system.*</tool>
        <directive>team/base</directive>
      </execute>
      <fetch>
        <knowledge>team/*</knowledge>
      </fetch>
      <acknowledge risk="elevated">It starts the base.</acknowledge>
    </permissions>
    <context>
      <system>team/voice</system>
      <suppress>bring_voice</suppress>
    </context>
    <hooks>
      <hook id="too_long" event="directive_return">
        <condition path="outputs.letter" op="contains" value="${inputs.guest}" />
        <action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">
          <param name="action">retry</param>
          <param name="message">${outputs.letter || inputs.guest} is too long</param>
        </action>
      </hook>
    </hooks>
  </metadata>

  <inputs>
    <input name="guest" type="string" required="true">Who is coming</input>
    <input name="seats" type="integer" default="2">How many seats</input>
  </inputs>

  <outputs>
    <letter>The greeting</letter>
    <output name="path" type="string" required="true">The file</output>
    <success>Greeted {input:guest}.</success>
  </outputs>
</directive>
```

<process>
  <step name="look_up">
    Find out about {input:guest}, and keep {input:seats|2} seats. guest is a word.
    `rye_fetch(query="{input:guest}", scope="knowledge")`
  </step>
  <step name="write">
    `rye_execute(item_type="tool", item_id="rye/file-system/write", parameters={"path": "a.md", "content": "…"})`
  </step>
</process>

<success_criteria>
  <criterion>a.md names {input:guest}</criterion>
</success_criteria>
"""

LEAD = """\
# Lead

```xml
<directive name="lead" version="1.0.0">
  <metadata>
    <description>Start others</description>
    <category>team/deep</category>
    <author>ada</author>
    <model tier="general" />
    <permissions>
      <execute>
        <directive>team.greet_guest</directive>
        <tool>rye.agent.threads.*</tool>
      </execute>
      <acknowledge risk="elevated">It starts threads.</acknowledge>
    </permissions>
    <hooks>
      <hook id="greet" event="after_complete">
        <action primary="execute" item_type="directive" item_id="team/greet_guest">
          <param name="guest">${inputs.who}</param>
        </action>
      </hook>
    </hooks>
  </metadata>
  <inputs>
    <input name="who" type="string" required="true">A guest</input>
  </inputs>
</directive>
```

`rye_execute(item_type="directive", item_id="team/greet_guest", parameters={"guest": "{input:who}", "seats": 2})`

`rye_execute(item_type="tool", item_id="rye/agent/threads/thread_directive", parameters={"directive_id": "team/greet_guest", "inputs": {"guest": "{input:who}"}})`
"""  # noqa: E501

VOICE = """\
```yaml
name: voice
title: How we speak
version: "1.0.0"
entry_type: reference
category: team
tags: [tone, "plain words"]
references:
  - team/rules
```

# Voice

Be warm. `team/rules` says more.
"""

RULES = """\
```yaml
name: rules
title: House rules
version: "1.0.0"
entry_type: reference
```

Shoes stay at the door.
"""

FILES = {
    ".ai/directives/team/base.md": BASE,
    ".ai/directives/team/greet_guest.md": GREET,
    ".ai/directives/team/deep/lead.md": LEAD,
    ".ai/knowledge/team/voice.md": VOICE,
    ".ai/knowledge/team/rules.md": RULES,
}


def write_workspace(folder: Path) -> None:
    given(FILES, folder)


def xml(metadata: str = "", body: str = "Work.", rest: str = "") -> str:
    """Return a directive with some text in its metadata, after that, and in its instructions."""
    return (
        '# Title\n\n```xml\n<directive name="new" version="1.0.0">\n  <metadata>\n    '
        f'{metadata}\n  </metadata>\n  <inputs>\n    <input name="guest" type="string">A guest</input>\n  </inputs>\n'
        '  <outputs>\n    <menu>A menu</menu>\n    <output name="price" />\n  </outputs>\n'
        f"{rest}</directive>\n```\n\n{body}\n"
    )
