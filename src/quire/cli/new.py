"""`quire new`: write a small document that checks without findings, as a start for the user's own.

The templates: a directive that is ready to be checked and signed, a playbook, and a pipeline with typed replies side
by side that are combined without a model.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePath
from typing import Final

import click

from quire.cli.options import require_text
from quire.cli.stdio import tell
from quire.display.text import pasted
from quire.errors import CannotStart

DIRECTIVES: Final = Path(".ai", "directives")
COMPLEXITIES: Final = {
    "simple": ("low", 6, 4096, "0.05"),
    "moderate": ("general", 15, 200_000, "0.50"),
    "complex": ("orchestrator", 30, 200_000, "1.00"),
}
"""By complexity: the tier of the model, then turns, tokens and dollars."""

_DIRECTIVE_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
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
    limits = {"tier": tier, "turns": turns, "tokens": tokens, "spend": spend}
    return _DIRECTIVE.format(call=_CALL, title=title, name=name, category=category, author="me", **limits)


def directive_place(name: str, category: str | None) -> tuple[Path, str]:
    """Return the file of a directive below the current folder, and its category. Raises `CannotStart`."""
    parts = PurePath(name.replace("\\", "/").removesuffix(".md")).parts
    folders, stem = parts[:-1], parts[-1] if parts else ""
    if category is not None:
        if folders:
            raise CannotStart(f"{name}: give the category in the name or with --category, not both")
        folders = PurePath(category.replace("\\", "/")).parts
    for folder in folders:
        if not _FOLDER.fullmatch(folder):
            raise CannotStart(f"{folder!r} is not a good folder for a directive: use letters, digits, - and _")
    if not _DIRECTIVE_NAME.fullmatch(stem):
        raise CannotStart(f"{stem!r} is not a name for a directive: use small letters, digits and _, a letter first")
    return inside(DIRECTIVES.joinpath(*folders, f"{stem}.md"), name), "/".join(folders)


KINDS = ("playbook", "pipeline", "directive", "test", "agents", "skill")
COMPLEXITY = ("simple", "moderate", "complex")
SUFFIX = ".playbook.md"
_PART = re.compile(r"[^\W_][\w .-]*")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|\Z)", re.IGNORECASE)

_PLAYBOOK = """\
# {title}

Writes a short answer to a question, for one reader, and lets you decide how deep it goes.

## SYSTEM

You write for busy readers. Be exact, be brief, and say so when you are not sure.

## INPUTS

- `question` (string): What the reader wants to know
- `reader` (string: a curious colleague): Who the answer is for

## STEP 1: Look at the question

Name the two or three things that a good answer to "{{{{question}}}}" has to cover, for {{{{reader}}}}.
Say whether the question is simple or hard.

@output(difficulty, extract:"difficulty")

## STEP 2: Ask how deep to go

@elicit(select, "The question looks {{{{difficulty}}}}. How deep should the answer go?", "short", "thorough")
@output(depth)

## STEP 3: Write the answer

```if depth == "thorough"```

### STEP 3a: Write with reasons

Answer "{{{{question}}}}" for {{{{reader}}}}. Give the reasons, one example, and what speaks against it.

```else```

### STEP 3b: Write in short

Answer "{{{{question}}}}" for {{{{reader}}}} in three sentences.

```endif```

## ARTIFACTS

type: markdown
"""


@click.command("new")
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@click.argument("name", required=False, callback=require_text)
@click.option("--title", help="The title, made from NAME without it; of a pipeline the description.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the document and write nothing.")
@click.option("--category", help="Directives: the folder below .ai/directives; NAME may begin with it, too.")
@click.option("--to", "folder", metavar="DIR", callback=require_text, help="Skills: the folder to make NAME/ in.")
@click.option("--complexity", type=click.Choice(COMPLEXITY), help="Directives: how much it may use; simple by default.")
def command(
    kind: str,
    name: str | None,
    title: str | None,
    force: bool,
    to_stdout: bool,
    category: str | None,
    folder: str | None,
    complexity: str | None,
) -> None:
    """Create a document or a test from a template.

    KIND is playbook, pipeline, directive or test. For a test, NAME is a document, and each branch and answer gets a
    case: a draft that fails until you write what it expects.

    For AI agents, KIND is agents: a section of AGENTS.md, which is replaced the next time; or skill: a skill NAME
    (quire) in .claude/skills if .claude exists, else in .agents/skills.
    """
    if folder is not None and kind != "skill":
        raise click.UsageError("--to is for skills")
    if kind in ("test", "agents", "skill") and not title is category is complexity is None:
        raise click.UsageError(f"--title, --category and --complexity are not for {kind}")
    if kind in ("agents", "skill"):
        from quire.cli.agent_files import new_agents, new_skill

        if kind == "agents":
            new_agents(name, to_stdout=to_stdout)
        else:
            new_skill(name, folder, force=force, to_stdout=to_stdout)
        return
    if kind == "test":
        _new_test(name, force=force, to_stdout=to_stdout)
        return
    if title is not None:
        title = " ".join(title.split())
        if not title or not title.isprintable():
            raise click.UsageError("--title must be some text on one line")
    inputs = ""
    if kind == "directive":
        file, category = directive_place(name or _slug(title or "").replace("-", "_") or "write_note", category)
        text = directive(file.stem, category, title or _title_of(file), complexity or COMPLEXITY[0])
    elif category is not None or complexity is not None:
        raise click.UsageError("--category and --complexity are for directives")
    elif kind == "pipeline":
        file = pipeline_place(name or _slug(title or "") or "example")
        text, inputs = pipeline(file.stem, title or DESCRIPTION), INPUTS
    else:
        file = target(name or _slug(title or "") or "example")
        text = playbook(title or _title_of(file))
    if to_stdout:
        click.echo(text, nl=False)
        return
    write(file, text, force=force)
    click.echo(str(file))
    named = pasted(str(file))
    tell(f"check it:  quire check {named}\nlook at it: quire show {named}")
    if kind == "directive":
        tell(f"sign it:   quire sign {named}")
    tell(f"run it:    quire run {named}{inputs}")


def _new_test(name: str | None, *, force: bool, to_stdout: bool) -> None:
    """Write the first test of a document beside it."""
    from quire.library.lookup import document_of
    from quire.testing.discovery import own_test
    from quire.testing.scaffold import scaffold

    if name is None:
        raise click.UsageError("a test needs its document: quire new test DOCUMENT")
    document = document_of(name)
    file = inside(Path(own_test(document.source.name)), name)
    if not to_stdout and not force and file.exists():
        raise is_there(file)
    text = scaffold(document)
    if to_stdout:
        click.echo(text, nl=False)
        return
    write(file, text, force=force)
    click.echo(str(file))
    tell(f"run it: quire test {pasted(str(file))}")


def playbook(title: str) -> str:
    return _PLAYBOOK.format(title=title)


def target(name: str) -> Path:
    """Return the path of a playbook with that name: below the current folder, with one suffix. Raises `CannotStart`."""
    stem = re.sub(r"(\.playbook)?(\.md)?\Z", "", name.replace("\\", "/"), flags=re.IGNORECASE)
    parts = parts_of(stem, name)
    return inside(Path(*parts[:-1], parts[-1] + SUFFIX), name)


def parts_of(stem: str, name: str) -> tuple[str, ...]:
    """Return the folders and the name of a new document. Raises `CannotStart` for names that are not allowed or leave
    the current folder."""
    parts = PurePath(stem).parts
    if PurePath(stem).is_absolute() or ".." in parts:
        raise CannotStart(f"{name}: a new document goes into this folder or below it")
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((" ", ".")) or _RESERVED.match(part):
            raise CannotStart(f"{name}: {part!r} is not a good name: use letters, digits, - and _")
    if not parts:
        raise CannotStart(f"{name!r} is not a name for a document")
    return parts


def inside(file: Path, name: str) -> Path:
    """Return the file. Raises `CannotStart` if a link leads out of this folder."""
    if not file.resolve().is_relative_to(Path.cwd().resolve()):
        raise CannotStart(f"{name}: leads out of this folder")
    return file


def write(file: Path, text: str, *, force: bool) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8", newline="\n") as out:
            out.write(text)
    except FileExistsError:
        raise is_there(file) from None
    except OSError as error:
        raise CannotStart(f"{file} cannot be written: {error.strerror or error}") from None


def is_there(file: Path) -> CannotStart:
    return CannotStart(f"{file} exists already: --force overwrites it")


def _title_of(file: Path) -> str:
    words = re.split(r"[-_. ]+", file.name.removesuffix(SUFFIX).removesuffix(".md"))
    text = " ".join(word for word in words if word)
    return text[:1].upper() + text[1:]


def _slug(title: str) -> str:
    return re.sub(r"[\W_]+", "-", title.lower()).strip("-")[:60]


PIPELINES: Final = Path("pipelines")
"""Folder of the workspace whose pipelines are registered, so that they can be run and called by name."""
PIPELINE_SUFFIX: Final = ".yaml"
DESCRIPTION: Final = "Answers several questions on one subject, and says how many of the answers are not sure."
INPUTS: Final = """ -i subject=tea -i 'questions=["what is it?", "who drinks it?"]' """.rstrip()
_PIPELINE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_ENDING = re.compile(r"\.ya?ml\Z", re.IGNORECASE)

_PIPELINE = """\
schema: Answer
fields:
  text: {type: string}
  sure: {type: bool}
---
pipeline: NAME
description: DESCRIPTION
steps:
  - for_each:
      over: ctx.questions
      max_items: 20
      max_parallel: 4
      on_error: retry(2)
      do:
        agent:
          prompt: |
            Answer this question on {ctx.subject} in two sentences: {item}
            Say whether you are sure of it.
          schema: Answer
      collect: {transform: {value: pipe}}
      output: answers
  - transform:
      value: "count(filter(answers, a -> not a.sure))"
      output: doubtful
  - transform:
      value: "{answers: answers, doubtful: doubtful}"
"""


def pipeline(name: str, description: str) -> str:
    # JSON is YAML: encoded as JSON, any description stays one text.
    return _PIPELINE.replace("pipeline: NAME", f"pipeline: {name}").replace(
        "description: DESCRIPTION", f"description: {json.dumps(description, ensure_ascii=False)}"
    )


def pipeline_place(name: str) -> Path:
    """Return the path of a pipeline with that name: in `pipelines/`, or where the name says. Raises `CannotStart`."""
    *folders, last = parts_of(_ENDING.sub("", name.replace("\\", "/")), name)
    if not _PIPELINE_NAME.fullmatch(last):
        raise CannotStart(f"{name}: a pipeline is called with letters, digits, _ and -, and no digit first")
    return inside(Path(*folders or PIPELINES.parts, last + PIPELINE_SUFFIX), name)
