"""Digests of plans: layout, comments and titles do not count, every other change does."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.errors import QuireError
from quire.library.document import load, read
from quire.plan.digest import _number, _quoted, plan_digest
from quire.source import Source
from quire.testing.mutation.mutants import mutants

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = sorted(
    path
    for ending in ("*.yaml", "*.md")
    for path in EXAMPLES.rglob(ending)
    if "test" not in path.name.split(".") and (".ai" not in path.parts or "directives" in path.parts)
)

PLAYBOOK = """# Report

## INPUTS

- `topic` (string): about

## SYSTEM

Be brief.

## STEP 1: Look

Look at {{topic}}.

@output(seen)

## STEP 2: Write

Write about {{seen}}.
"""

PIPELINE = """pipeline: report
dialect: quire
input:
  topic: {type: string}
steps:
  - agent: {prompt: "Look at {{ctx.topic}}", output: seen}
  - transform: {value: "ctx.seen + '!'"}
"""

DIRECTIVE = """# Deploy

```xml
<directive name="deploy" version="1.0.0">
  <metadata>
    <description>Deploys it.</description>
    <category>ops</category>
    <author>me</author>
    <model tier="fast" />
    <permissions><execute><tool>rye.bash</tool></execute></permissions>
  </metadata>
  <outputs><output name="url">Where it is</output></outputs>
</directive>
```

Deploy it.
"""


def digest(text: str, name: str) -> str:
    return plan_digest(read(Source.of(text, name)).runnable())


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "counts"),
    [
        ("a.playbook.md", PLAYBOOK, "# Report", "# Another report", False),
        ("a.playbook.md", PLAYBOOK, "STEP 2: Write", "STEP 2: Put down", False),
        ("a.playbook.md", PLAYBOOK, "\n\n## STEP 2", "\n\n\n\n## STEP 2", False),
        ("a.playbook.md", PLAYBOOK, "string): about", "string): the matter", False),
        ("a.playbook.md", PLAYBOOK, "STEP 1: Look", "STEP 1: Search", True),
        ("a.playbook.md", PLAYBOOK, "Be brief", "Be long", True),
        ("a.playbook.md", PLAYBOOK, "Look at", "Look for", True),
        ("a.playbook.md", PLAYBOOK, "@output(seen)", "@output(found)", True),
        ("a.playbook.md", PLAYBOOK, "`topic` (string", "`topic` (text", True),
        ("a.yaml", PIPELINE, "steps:", "# a comment\nsteps:", False),
        ("a.yaml", PIPELINE, "ctx.seen + '!'", "ctx.seen  +   '!'", False),
        ("a.yaml", PIPELINE, '{prompt: "Look at {{ctx.topic}}", output: seen}',
         "\n      output: seen\n      prompt: Look at {{ctx.topic}}", False),
        ("a.yaml", PIPELINE, "pipeline: report", "pipeline: other", True),
        ("a.yaml", PIPELINE, "'!'", "'?'", True),
        ("a.yaml", PIPELINE, "type: string", "type: number", True),
        ("a.yaml", PIPELINE, "output: seen", "output: found", True),
        ("d.md", DIRECTIVE, "# Deploy", "# Deploys", False),
        ("d.md", DIRECTIVE, 'version="1.0.0"', 'version="1.0.1"', False),
        ("d.md", DIRECTIVE, "<author>me", "<author>you", False),
        ("d.md", DIRECTIVE, "    <category>", "      <category>", False),
        ("d.md", DIRECTIVE, "Deploys it", "Ships it", True),
        ("d.md", DIRECTIVE, "rye.bash", "rye.web.fetch", True),
        ("d.md", DIRECTIVE, "Where it is", "Its address", True),
        ("d.md", DIRECTIVE, "Deploy it.", "Deploy it now.", True),
        ("d.md", DIRECTIVE, 'tier="fast"', 'tier="deep"', True),
    ],
)  # fmt: skip
def test_changes(name: str, text: str, old: str, new: str, counts: bool) -> None:
    assert old in text
    assert (digest(text.replace(old, new, 1), name) != digest(text, name)) is counts


def test_a_title_counts_only_if_a_later_step_reads_it() -> None:
    alone = PLAYBOOK.replace("## STEP 2: Write\n", "## STEP 2: Write\n\n@context(none)\n")
    assert digest(alone, "a.playbook.md") == digest(alone.replace("STEP 1: Look", "STEP 1: Search"), "a.playbook.md")


def test_numbers_and_truth_values_are_not_the_same() -> None:
    seen = {
        digest(f"pipeline: a\nsteps:\n  - tool: {{name: x, args: {{v: {value}}}}}\n", "a.yaml")
        for value in ("1", "1.0", "true", "'1'", "[1]", "{a: 1}", "null", "['l1', 1]")
    }
    assert len(seen) == 8


def test_keys_of_arguments_have_no_order() -> None:
    texts = [
        f"pipeline: a\nsteps:\n  - tool: {{name: x, args: {{v: {value}}}}}\n"
        for value in ("{a: 1, b: 2}", "{b: 2, a: 1}")
    ]
    assert len({digest(text, "a.yaml") for text in texts}) == 1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_every_mutant_has_another_digest(path: Path) -> None:
    """A mutant is the smallest change that a run can show."""
    try:
        document = load(path)
    except QuireError:
        return
    if document.plan is None:
        return
    own = plan_digest(document.plan)
    same = [mutant.id for mutant in mutants(document.plan, document.source) if plan_digest(mutant.plan) == own]
    assert same == []


def test_digests_stay_the_same_in_later_versions() -> None:
    """A digest is stored in locks: if this fails, every lock of every user is stale."""
    documents = {"a.playbook.md": PLAYBOOK, "a.yaml": PIPELINE, "d.md": DIRECTIVE}
    assert {name: digest(text, name)[:16] for name, text in documents.items()} == {
        "a.playbook.md": "3893e3a62e498873",
        "a.yaml": "46c24e4904844328",
        "d.md": "6f2d9a9c1d18832f",
    }


@given(st.text(st.characters(), max_size=40))
@settings(max_examples=depth(300, 20_000), deadline=None)
def test_texts_are_digested_as_json(text: str) -> None:
    """Digests of locks that exist must not change."""
    assert _quoted(text) == encode_basestring(text)


def test_every_letter_is_digested_as_json() -> None:
    for code in (*range(0x300), *range(0x2000, 0x2100), *range(0xD7F0, 0xE010), 0xFEFF, 0x1F600, 0x10FFFF):
        assert _quoted(chr(code)) == encode_basestring(chr(code))


@pytest.mark.parametrize("value", [0, -7, 10**30, True, False, None, 1.5, 1e22, float("inf")])
def test_numbers_are_digested_as_json(value: object) -> None:
    assert _number(value) == json.dumps(value)
