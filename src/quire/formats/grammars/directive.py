"""How a directive is written."""

from __future__ import annotations

TEXT = """\
# How to write a directive

A directive is a Markdown file, `.ai/directives/CATEGORY/NAME.md`. The fence of XML says what an agent may do, and the
engine enforces it; the text after the fence is what the agent is told to do. Imitate this example.

`````markdown
# Summarise a file

Reads a file and writes a summary beside it.

```xml
<directive name="summarise_file" version="1.0.0">
  <metadata>
    <description>Summarise a text file into another file</description>
    <category>team</category>
    <author>ada</author>
    <model tier="low" />
    <limits turns="6" tokens="8000" spend="0.05" />
    <permissions>
      <execute>
        <tool>rye.file-system.read</tool>
        <tool>rye.file-system.write</tool>
      </execute>
    </permissions>
  </metadata>

  <inputs>
    <input name="source" type="string" required="true">The file to read</input>
    <input name="sentences" type="integer" default="3">How long the summary is</input>
  </inputs>

  <outputs>
    <output name="path" type="string" required="true">The file with the summary</output>
  </outputs>
</directive>
```

<process>
  <step name="read_source">
    Read {input:source}.
    `rye_execute(item_type="tool", item_id="rye/file-system/read", parameters={"path": "{input:source}"})`
  </step>
  <step name="write_summary">
    Write {input:sentences} sentences into summary.md.
    `rye_execute(item_type="tool", item_id="rye/file-system/write", parameters={"path": "summary.md", "content": "…"})`
  </step>
  <step name="return_path">
    Return the path of the file.
  </step>
</process>

<success_criteria>
  <criterion>summary.md exists and has {input:sentences} sentences</criterion>
</success_criteria>
`````

## Grammar

```text
FILE        # TITLE, a line for people, one ```xml fence with <directive>, then the instructions
DIRECTIVE   <directive name="snake_case" version="1.0.0" [extends="CATEGORY/NAME"]>
              <metadata> <inputs>? <outputs>? </directive>
METADATA    <description> <category> <author> <model tier="low|general|orchestrator"/> <permissions>
            [<limits/>] [<context>] [<hooks>]
LIMITS      <limits turns="6" tokens="8000" spend="0.05" spawns="2" depth="2" duration_seconds="600"/>, any of them
PERMISSIONS <execute|fetch|sign>, in it <tool|directive|knowledge|pipeline|playbook>PATTERN</…>; * matches any text
            [<acknowledge risk="elevated|unrestricted">WHY</acknowledge>]
INPUT       <input name="NAME" type="string|integer|number|boolean|array|object"
            [required="true"] [default="…"]>TEXT</input>
OUTPUT      <output name="NAME" type="…" [required="true"]>TEXT</output>
CONTEXT     <system|before|after|suppress>KNOWLEDGE_ID</…>
HOOK        <hook id="ID" event="EVENT"> <condition path="…" op="OP" value="…"/> <action primary="execute"
            item_type="TYPE" item_id="ID"> <param name="NAME">VALUE</param> </action> </hook>
EVENT       build_system_prompt | thread_started | after_step | error | limit | directive_return | after_complete
OP          eq | ne | gt | gte | lt | lte | in | contains | regex | exists
VALUE       {input:NAME}, {input:NAME:default}, {input:NAME?}
CALL        in backticks: `rye_execute(…)`, `rye_fetch(…)`, `rye_sign(…)`
```

Tools: `rye.file-system.read`, `write`, `edit`, `ls`, `glob`, `grep`; `rye.web.fetch`; `rye.bash`; `ask`;
`mcp/SERVER/TOOL`; `python/FUNCTION`.

## Rules

1. `name` is the name of the file, `category` its folder; a name begins with a verb.
2. Anything that is not granted is refused. Grant only what a step uses.
3. `rye.bash` and `rye.web` need `<acknowledge risk="elevated">` with the reason.
4. The fence opens at the start of a line. `&` and `<` in a text are written `&amp;` and `&lt;`.
5. Every required output is returned by its name; criteria can be measured.
6. Instructions stand after the fence. Sign the file when it is finished: `quire sign FILE`.
"""
