"""A prompt is edited in the quoting of its format: the text has exactly the new prompt, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import Refused
from quire.library.document import Document, read
from quire.plan.nodes import Think
from quire.plan.pipeline_work import Agent
from quire.runs.prompt_edit import prompt_text, with_prompt
from quire.source import Source

PLAYBOOK = """\
# Letter

## INPUTS
- `topic` (string): What it is about

## STEP 1: Draft
Write about {{topic}}.

@output(draft)

Be short.

## STEP 2: Choose
```if topic == "tea"```
### STEP 2a: Tea
Praise {{draft}}.
```else```
### STEP 2b: Other
Shorten {{draft}}.
```endif```

## STEP 3: End
Sign {{draft}}.
"""

PIPELINE = """\
---
pipeline: letters
steps:
  - agent:
      prompt: Write about {topic}
      output: draft
  - agent: {prompt: "Name three, of {draft}.", output: names}
  - agent:
      prompt: 'It''s {draft}'
      output: its
  - for_each:
      over: names
      on_error: continue
      do:
        agent:
          prompt: |
            Explain {item}.

            In {draft}.
      collect:
        agent:
          prompt: >-
            Join them
            in a line.
      output: all
  - agent:
      prompt: |-
        End
          of {all}.
      output: end
"""

DIRECTIVE = """\
# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet a guest</description>
    <category>house</category>
    <author>desk</author>
    <model tier="low" />
    <limits turns="6" />
    <permissions><execute><tool>rye.file-system.read</tool></execute></permissions>
  </metadata>
  <inputs><input name="guest" type="string" required="true">Who</input></inputs>
</directive>
```

<process>
  <step name="one">Greet {input:guest}.</step>
</process>
"""

NAMES = {PLAYBOOK: "letter.playbook.md", PIPELINE: "letters.yaml", DIRECTIVE: "house/.ai/directives/house/greet.md"}
PLACES = [
    (PLAYBOOK, "1"),
    (PLAYBOOK, "2/case[1]/1"),
    (PLAYBOOK, "3"),
    (PIPELINE, "1"),
    (PIPELINE, "2"),
    (PIPELINE, "3"),
    (PIPELINE, "4/for_each"),
    (PIPELINE, "4/collect"),
    (PIPELINE, "5"),
    (DIRECTIVE, "thread"),
]


def document(text: str) -> Document:
    return read(Source.of(text, NAMES[text]))


def prompts(document: Document) -> dict[str, object]:
    plan = document.runnable()
    if plan.thread:
        return {"thread": plan.thread.body}
    return {path: step.work.prompt for path, step in plan.steps() if isinstance(step.work, Think | Agent)}


def tried(text: str, path: str, new: str) -> Document | None:
    """Return the document with a new prompt as it is read again; None if the prompt was refused."""
    old = document(text)
    try:
        source = with_prompt(old, path, new)
    except Refused:
        return None
    return read(source)


@pytest.mark.parametrize(("text", "path"), PLACES)
def test_the_same_prompt_is_no_edit(text: str, path: str) -> None:
    old = document(text)
    assert path in prompts(old)
    assert with_prompt(old, path, prompt_text(old, path)) is old.source


@pytest.mark.parametrize(("text", "path"), PLACES)
@pytest.mark.parametrize(
    "new", ["Say it in one word.", "Say it.\n\n- in two\n- lines: {draft} {{draft}}", "Zwölf ¿señor? 字"]
)
def test_plain_words_always_fit(text: str, path: str, new: str) -> None:
    again = tried(text, path, new)
    assert again is not None
    assert prompt_text(again, path).strip() == new
    assert {at: prompt for at, prompt in prompts(again).items() if at != path} == {
        at: prompt for at, prompt in prompts(document(text)).items() if at != path
    }


WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\n\n", "---", "## STEP 9: x", "```", '```if topic == "a"```', "@output(x)", "@tool(a, b, {})", "  ",
             "- agent:", "prompt: x", "steps:", "&a", "*a", "!file x", "'", '"', "\\", "|", ">", "#", " #", "{", "}",
             "{{topic}}", "{draft}", "</process>", "```xml", '<directive name="x">', "<!-- ", "\t", "\r\n", "\ufeff",
             "\x00", "\x85", "\u2028", "true", "1", "null", "~", ": ", "@context(none)", "# Title", "<permissions>",
             "\ud800"]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(("text", "path"), PLACES)
@given(new=WORDS)
def test_a_prompt_is_read_again_as_it_was_written_or_is_refused(text: str, path: str, new: str) -> None:
    again = tried(text, path, new)
    if again is None:
        return
    old = document(text)
    plan, before = again.runnable(), old.runnable()
    assert [at for at, _ in plan.steps()] == [at for at, _ in before.steps()]
    assert {at: prompt for at, prompt in prompts(again).items() if at != path} == {
        at: prompt for at, prompt in prompts(old).items() if at != path
    }
    assert (plan.title, plan.inputs, plan.system, plan.description) == (
        before.title,
        before.inputs,
        before.system,
        before.description,
    )
    if plan.thread and before.thread:
        assert plan.thread.permissions_text == before.thread.permissions_text
    # Editing back gives the prompts of before.
    back = with_prompt(again, path, prompt_text(old, path))
    assert prompts(read(back)) == prompts(old)


@pytest.mark.parametrize(
    ("text", "path", "new"),
    [
        (PLAYBOOK, "1", "Write.\n\n## STEP 2: Delete\nall of it"),
        (PLAYBOOK, "1", "Write.\n@tool(shell, run, {\"command\": \"rm\"})"),
        (PLAYBOOK, "1", "Write.\n@output(other)"),
        (PLAYBOOK, "2/case[1]/1", "```endif```"),
        (PLAYBOOK, "1", " \n "),
        (PIPELINE, "1", ""),
        (DIRECTIVE, "thread", "\n"),
    ],
)  # fmt: skip
def test_a_prompt_that_would_be_more_than_text_is_refused(text: str, path: str, new: str) -> None:
    assert tried(text, path, new) is None


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("1", "true"),
        ("1", "a: b # c"),
        ("2", "x}\n  - agent: {prompt: y"),
        ("3", "'"),
        ("5", "a\nsteps: []\n---\n"),
        ("1", "|\n x"),
    ],
)
def test_yaml_in_a_prompt_stays_text(path: str, new: str) -> None:
    again = tried(PIPELINE, path, new)
    assert again is not None
    assert prompt_text(again, path) == new


def test_xml_and_fences_in_the_prose_of_a_directive_stay_text() -> None:
    new = "```xml\n<directive name='x'><metadata><permissions>*</permissions></metadata></directive>\n```"
    again = tried(DIRECTIVE, "thread", new)
    assert again is not None
    thread, before = again.runnable().thread, document(DIRECTIVE).runnable().thread
    assert thread and before
    assert (thread.body, thread.permissions) == (new, before.permissions)


def test_a_scalar_keeps_its_notation() -> None:
    source = with_prompt(document(PIPELINE), "4/for_each", "One.\n\n Two.\n")
    assert "          prompt: |\n            One.\n\n             Two.\n      collect:" in source.text
    source = with_prompt(document(PIPELINE), "1", "Write less")
    assert "      prompt: Write less\n" in source.text
    source = with_prompt(document(PIPELINE), "3", "It's less")
    assert "      prompt: 'It''s less'\n" in source.text
    source = with_prompt(document(PIPELINE), "1", "One\nTwo")
    assert "      prompt: |-\n        One\n        Two\n      output: draft" in source.text


def test_a_piece_of_prose_keeps_its_place_beside_directives() -> None:
    old = document(PLAYBOOK)
    assert prompt_text(old, "1") == "Write about {{topic}}.\n\nBe short."
    source = with_prompt(old, "1", "Write about {{topic}}.\n\nBe brief.")
    assert source.text == PLAYBOOK.replace("Be short.", "Be brief.")


def test_an_anchored_prompt_is_refused() -> None:
    text = PIPELINE.replace("prompt: Write about {topic}", "prompt: &p Write about {topic}").replace(
        '{prompt: "Name three, of {draft}.", output: names}', "{prompt: *p, output: names}"
    )
    old = read(Source.of(text, "letters.yaml"))
    with pytest.raises(Refused, match="more than the prompt"):
        with_prompt(old, "1", "Other")
