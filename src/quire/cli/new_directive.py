"""The directive that `quire new directive` writes: small, complete, ready to be checked and signed."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Final

from quire.errors import CannotStart

FOLDER: Final = Path(".ai", "directives")
COMPLEXITIES: Final = {
    "simple": ("low", 6, 4096, "0.05"),
    "moderate": ("general", 15, 200_000, "0.50"),
    "complex": ("orchestrator", 30, 200_000, "1.00"),
}
"""The tier of the model, then turns, tokens and dollars."""

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)

_CALL = (
    'rye_execute(item_type="tool", item_id="rye/file-system/write", '
    'parameters={"path": "{input:path}", "content": "…"})'
)
_DIRECTIVE = """\
# {title}

Write a short note on a subject into a file of the workspace.

```xml
<directive name="{name}" version="1.0.0">
  <metadata>
    <description>Write a short note on a subject into a file</description>
    <category>{category}</category>
    <author>{author}</author>
    <model tier="{tier}" />
    <limits turns="{turns}" tokens="{tokens}" spend="{spend}" />
    <permissions>
      <execute>
        <tool>rye.file-system.write</tool>
      </execute>
    </permissions>
  </metadata>

  <inputs>
    <input name="subject" type="string" required="true">What the note is about</input>
    <input name="path" type="string" default="note.md">The file to write, below the workspace</input>
  </inputs>

  <outputs>
    <output name="path" type="string" required="true">The file that was written</output>
  </outputs>
</directive>
```

<process>
  <step name="write_note">
    Write a note of five sentences on {{input:subject}} into {{input:path}}.
    `{call}`
  </step>

  <step name="return_path">
    Return the path of the file.
  </step>
</process>

<success_criteria>
  <criterion>{{input:path}} exists and holds five sentences on {{input:subject}}</criterion>
</success_criteria>
"""


def directive(name: str, category: str, title: str, complexity: str) -> str:
    tier, turns, tokens, spend = COMPLEXITIES[complexity]
    return _DIRECTIVE.format(
        call=_CALL,
        title=title,
        name=name,
        category=category,
        author="me",
        tier=tier,
        turns=turns,
        tokens=tokens,
        spend=spend,
    )


def place(name: str, category: str | None) -> tuple[Path, str]:
    """The file of a directive below the current folder, and its category. Raises `CannotStart`."""
    parts = PurePath(name.replace("\\", "/").removesuffix(".md")).parts
    folders, stem = parts[:-1], parts[-1] if parts else ""
    if category is not None:
        if folders:
            raise CannotStart(f"{name}: give the category in the name or with --category, not both")
        folders = PurePath(category.replace("\\", "/")).parts
    for folder in folders:
        if not _FOLDER.fullmatch(folder):
            raise CannotStart(f"{folder!r} is not a good folder for a directive: use letters, digits, - and _")
    if not _NAME.fullmatch(stem):
        raise CannotStart(f"{stem!r} is not a name for a directive: use small letters, digits and _, a letter first")
    file = FOLDER.joinpath(*folders, f"{stem}.md")
    if not file.resolve().is_relative_to(Path.cwd().resolve()):
        raise CannotStart(f"{name}: leads out of this folder")
    return file, "/".join(folders)
