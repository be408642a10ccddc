"""Hovers of playbooks."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

HEAD = """\
# Note

Writes a note.

## INPUTS

- `topic` (string): What *it* is about
- `words` (number: 300): Length
- `depth` (enum: quick, thorough): How deep

"""
BODY = """\
## STEP 1: Sort

Sort {{topic}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask

@elicit(select, "Which?", "one", "two")
@output(choice)

## STEP 3: Write

Write {{words}} words about {{topic}}.

```if kind == "a"```

### STEP 3a: First

Write it as {{choice}}.

```endif```
"""


def marked(before: str, word: str, text: str = HEAD + BODY) -> str:
    """Return the document with a cursor before a word that comes after another text."""
    at = text.index(word, text.index(before))
    return text[:at] + "‸" + text[at:]


@pytest.mark.parametrize(
    ("before", "word", "parts"),
    [
        ("Sort {{", "topic", ["**`topic`** · input, `string`, required", r"What \*it\* is about", "steps 1, 3"]),
        ("Write {{", "words", ["input, `number`, default `300`", "Read in step 3"]),
        ("if kind", "kind", ['kept result, `"a" | "b"`', "step 1 (Sort) keeps the reply of the model"]),
        ("as {{", "choice", ['answer, `"one" | "two"`', "step 2 (Ask) keeps the answer of a person"]),
        ("@output(kind", "output", ["**`@output`**", '@output(name: enum, "a", "b")']),
        ("```if", "if", ["**`if`**", "first branch"]),
        ("## STEP 1", "STEP", ["**STEP 1: Sort**", "asks a model", "Sort {{topic}}.", "--- user ---"]),
        ("## STEP 2", "Ask", ["asks a person", "`one` or `two`"]),
        ("## STEP 3:", "3", ['`kind == "a"` → 3a', "otherwise no branch is taken", "The document takes"]),
        ("### STEP 3a", "3a", ["**STEP 3a: First**", "Write it as"]),
        ("# Note", "Note", ["**Note** · playbook", "Writes a note.", "A run takes ≤ 3 calls, 1 question."]),
    ],
)
def test_a_hover_tells_what_stands_there(editor: Editor, before: str, word: str, parts: list[str]) -> None:
    found = editor.hover("note.playbook.md", marked(before, word))
    for part in parts:
        assert part in found, found


def test_a_name_that_nothing_sets_says_so(editor: Editor) -> None:
    text = "# T\n\n## STEP 1: A\n\nSay {{‸nothing}} and {{other:string:hello}}.\n"
    assert "set by nothing" in editor.hover("t.playbook.md", text)
    text = "# T\n\n## STEP 1: A\n\nSay {{nothing}} and {{ot‸her:string:hello}}.\n"
    assert "`hello`, its own default" in editor.hover("t.playbook.md", text)


def test_a_value_that_comes_later_says_so(editor: Editor) -> None:
    text = "# T\n\n## STEP 1: A\n\nSay {{la‸ter}}.\n\n## STEP 2: B\n\nHm.\n\n@output(later)\n"
    assert "it is set later" in editor.hover("t.playbook.md", text)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            '@tool(quire, file__‸read, {"path": "x"})',
            ["built-in tool", "only reads", "`path` (string, required)", "Granted"],
        ),
        ('@tool(quire, http__‸get, {"url": "x"})', ["elevated", "Not granted: a run needs `--allow`."]),
        ("@tool(qu‸ire, now)", ["built-in tools, and other documents"]),
        ("@tool(quire, no‸thing)", ["Neither a built-in tool nor a document"]),
        (
            "@tool(quire, s‸ub)",
            ["playbook, `playbooks/sub.playbook.md`", "`who` (string, required): The person", "Says hello."],
        ),
        ('@tool(quire, sub, {"w‸ho": "me"})', ["input of `sub`", "The person"]),
        ('@tool(quire, sub, {"w‸hat": "me"})', ["not an input of `sub`"]),
        ("@tool(clock, ti‸ck)", ["tool of the server `clock`", "`quire trust`"]),
    ],
)
def test_a_tool_has_its_arguments_class_and_grant(editor: Editor, line: str, parts: list[str]) -> None:
    editor.write(
        "playbooks/sub.playbook.md",
        "# Sub\n\nSays hello.\n\n## INPUTS\n\n- `who` (string): The person\n\n## STEP 1: A\n\nHi {{who}}.\n",
    )
    found = editor.hover("t.playbook.md", f"# T\n\n## STEP 1: A\n\n{line}\n")
    for part in parts:
        assert part in found, found


def test_a_model_says_what_it_means(editor: Editor) -> None:
    editor.write(
        "quire.toml",
        '[models]\ndefault = "anthropic:claude-x"\n[models.tiers]\ncheap = "openai:mini"\n'
        '[agents.reader]\nmodel = "cheap"\n',
    )
    text = "# T\n\n## STEP 1: A\n\n@model(‸{})\n\nHi.\n"
    assert "tier, means `openai:mini`" in editor.hover("t.playbook.md", text.replace("{}", "low"))
    assert "agent, means `openai:mini`" in editor.hover("t.playbook.md", text.replace("{}", "reader"))
    assert "means `anthropic:claude-x`" in editor.hover("t.playbook.md", text.replace("{}", "general"))
    assert "not known" in editor.hover("t.playbook.md", text.replace("{}", "opus"))


def test_a_fence_in_a_prompt_does_not_end_the_hover(editor: Editor) -> None:
    found = editor.hover("t.playbook.md", "# T\n\n## ‸STEP 1: A\n\nShow this:\n\n````md\n```\nx\n```\n````\n")
    fence = next(line for line in found.split("\n") if line.endswith("`text"))
    assert fence == "`````text"


def test_a_finding_shows_its_page_where_nothing_else_is_known(editor: Editor) -> None:
    text = "# T\n\n## STEP 1: A\n\n@ouput(x)\n\nHi.\n"
    editor.open("t.playbook.md", text)
    assert editor.codes("t.playbook.md")
    found = editor.ask("textDocument/hover", editor.place("t.playbook.md", text.index("ouput(x)") + 6))
    assert "Wrong:" in found["contents"]["value"]


def test_a_document_with_errors_still_has_hovers(editor: Editor) -> None:
    found = editor.hover("t.playbook.md", "## ‸STEP 1: A\n\nSay {{x}}.\n\n@output(y)\n")
    assert "STEP 1: A" in found
    assert "has errors" in found


def test_a_link_in_a_document_is_not_followed(editor: Editor) -> None:
    text = "# T\n\n![x](https://example.org/x.png)\n\n## STEP 1: A\n\nHi.\n"
    assert "](https" not in editor.hover("t.playbook.md", text.replace("# T", "# ‸T"))
