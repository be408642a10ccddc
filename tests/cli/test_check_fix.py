"""`quire check --fix` mends what is certain, says so, and leaves everything else as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.codes_page import INTRODUCTION

from quire.cli import main
from quire.cli.fixes import chosen_fixes, edited
from quire.diagnostics import Diagnostic, Edit, Fix, replacing
from quire.formats.near_names import name_fix, word_fix
from quire.formats.playbook.codes import reader
from quire.source import Source, Span

HEAD = "# T\n\n## INPUTS\n\n- `topic` (string): what\n- `mode` (enum: short, long): how\n\n"
STEP = "## STEP 1: A\n\nWrite on {{topic}}, {{mode}}.\n"
DIRECTIVE = """# D

```xml
<directive name="d" version="1.0.0">
  <metadata>
    <description>x</description>
    <category>c</category>
    <author>a</author>
    <model tier="low" />
    <permissions><execute><tool>rye.file.*</tool></execute></permissions>
META
  </metadata>
  <inputs>
    <input name="topic" type="string" required="true">x</input>
  </inputs>
</directive>
```

Write on {input:topic}.
"""
PIPELINE = "pipeline: p\ndescription: x\nsteps:\n"
SCHEMA = "---\nschema: report\nfields:\n  title: {type: string}\n"


def meta(line: str) -> str:
    return DIRECTIVE.replace("META", line)


PLAYBOOKS = {
    "PB004": ("# T\n\n## Step 1: A\n\nGo.\n\n## step 2 - B\n\nOn.\n", "## STEP 1: A", "## STEP 2: B"),
    "PB103": (HEAD + STEP + "\n## ARTIFACTS\n\ntype: markdwon\n", "type: markdown"),
    "PB104": (
        HEAD + STEP + '\n```if mod == "long"```\n### STEP 1a: L\nMore.\n```endif```\n',
        '```if mode == "long"```',
    ),
    "PB105": (HEAD + STEP + '@elicit(confrim, "Go?")\n', '@elicit(confirm, "Go?")'),
    "PB106": (HEAD + STEP + "@ouput(draft)\n\n## STEP 2: B\n\nGo: {{draft}}\n", "@output(draft)"),
    "PB107": (
        HEAD + STEP + "```If mode == 'long'```\n### STEP 1a: L\nMore.\n```end if```\n",
        '```if mode == "long"```',
        "```endif```",
    ),
    "PB108": (HEAD + STEP + "@prompt(libary:tone)\n", "@prompt(library:tone)"),
    "PB110": (HEAD + STEP + '```if mode = "long"```\n### STEP 1a: L\nMore.\n```endif```\n', '```if mode == "long"```'),
    "PB119": (HEAD + STEP + "\n## Step 2: B\n\nGo.\n", "## STEP 2: B"),
    "PB201": (HEAD + "## STEP 1: A\n\nOn {{topc}}, {{topic}}, {{mode}}.\n", "On {{topic}}, {{topic}}, {{mode}}."),
    "PB206": (HEAD + STEP + '```if mode == "Long"```\n### STEP 1a: L\nMore.\n```endif```\n', '```if mode == "long"```'),
    "PB212": (HEAD + "## STEP 1: A\n\nOn {{ topic }} and {{mode}} {{topic}}.\n", "On {{topic}} and {{mode}}"),
    "PB214": ("# T\n\n## Input\n\n- `topic` (string): what\n\n## STEP 1: A\n\nOn {{topic}}.\n", "## INPUTS"),
    "PB229": ("# T\n\n## INPUTS\n\n- `n` (integer: 3): x\n\n## STEP 1: A\n\nOn {{n}}.\n", "- `n` (number: 3): x"),
}
DIRECTIVES = {
    "DR021": (meta('    <limits trns="6" />'), '<limits turns="6" />'),
    "DR101": (meta("    <contxt>\n    </contxt>"), "    <context>\n    </context>"),
    "DR105": (
        meta('    <hooks><hook event="limt"><action item_type="tool" item_id="rye/file"/></hook></hooks>'),
        'event="limit"',
    ),
    "DR107": (meta("").replace('type="string"', 'type="strng"'), 'type="string"'),
    "DR108": (meta("").replace("{input:topic}.", "{input:topc}, {input:topic}."), "{input:topic}, {input:topic}."),
}
PIPELINES = {
    "EX001": (PIPELINE + '  - transform: {value: "cont(ctx.a)"}\n', 'value: "count(ctx.a)"'),
    "PL005": (PIPELINE.replace("description", "descripton") + "  - transform: {value: '1'}\n", "description: x"),
    "PL009": (PIPELINE + "  - transfrom: {value: '1'}\n", "- transform: {value: '1'}"),
    "PL011": (PIPELINE + "  - transform: {vlaue: '1'}\n", "- transform: {value: '1'}"),
    "PL017": (
        PIPELINE + "  - for_each: {over: pipe, on_error: Continue, do: {transform: {value: item}}}\n",
        "on_error: continue",
    ),
    "PL043": (PIPELINE + "  - agent: {prompt: go, schema: report}\n" + SCHEMA.replace("string", "int"), "type: number"),
    "PL044": (PIPELINE + "  - agent: {prompt: go, schema: report}\n" + SCHEMA.replace("string", "string, requird: no"),
              "required: no"),
    "PL102": (PIPELINE + "  - agent: {prompt: go, schema: reprot}\n" + SCHEMA, "schema: report}"),
    "PL109": (
        PIPELINE + "  - agent: {prompt: go, schema: report, output: r}\n  - transform: {value: ctx.r.titel}\n" + SCHEMA,
        "value: ctx.r.title}",
    ),
    "PL113": (PIPELINE + '  - tool: {name: file__read, args: {pth: "a.txt"}}\n', 'args: {path: "a.txt"}'),
    "PL140": (PIPELINE + "  - agent: {prompt: go, schema: report}\n" + SCHEMA + "  more: {type: ref, schema: remrak}\n"
              "---\nschema: remark\nfields:\n  x: {type: string}\n", "schema: remark}"),
    "TY105": (
        PIPELINE + "  - agent: {prompt: go, schema: report, output: r}\n"
        "  - transform: {value: \"ctx.r.kind == 'invoce'\"}\n" + SCHEMA
        + "  kind: {type: enum, values: [invoice, letter]}\n",
        "ctx.r.kind == 'invoice'",
    ),
    "PL202": (PIPELINE + "  - agent: {prompt: 'Sum up { ctx.doc }.'}\n", "Sum up {ctx.doc}."),
}  # fmt: skip
TESTS = {
    "TS001": ("cases:\n  - {name: a, expect: {status: complete}}\n", "status: completed"),
    "TS002": ("cases:\n  - {name: a, expct: {output: x}}\n", "expect: {output: x}"),
}
ROWS = [
    *((code, "a.playbook.md", *row) for code, row in PLAYBOOKS.items()),
    *((code, "d.md", *row) for code, row in DIRECTIVES.items()),
    *((code, "p.yaml", *row) for code, row in PIPELINES.items()),
    *((code, "p.test.yaml", *row) for code, row in TESTS.items()),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_code_that_has_a_fix(row: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, name, before, *wanted = row
    file = here / name
    file.write_text(before)

    main(["check", name, "--json"])
    found = [one for one in json.loads(capsys.readouterr().out) if one["code"] == code]
    assert any(one["fix"] for one in found), found
    assert file.read_text() == before, "only --fix writes"

    main(["check", name, "--json", "--fix"])
    output = capsys.readouterr()
    assert not [one for one in json.loads(output.out) if one["code"] == code]
    text = file.read_text()
    for line in wanted:
        assert line in text
    assert " → " in output.err
    changed = [pair for pair in zip(before.split("\n"), text.split("\n"), strict=True) if pair[0] != pair[1]]
    assert len(changed) == output.err.count(" → ")


CERTAIN_OF_NOTHING = {
    "two names are near": "# T\n\n## INPUTS\n\n- `cost` (string): x\n- `host` (string): x\n\n"
    "## STEP 1: A\n\nOn {{gost}}, {{cost}}, {{host}}.\n",
    "a digit": "# T\n\n## INPUTS\n\n- `draft1` (string): x\n\n## STEP 1: A\n\nOn {{draft2}}, {{draft1}}.\n",
    "a plural": "# T\n\n## INPUTS\n\n- `items` (string): x\n\n## STEP 1: A\n\nOn {{item}}, {{items}}.\n",
    "not yet set": "# T\n\n## STEP 1: A\n\nOn {{darft}}.\n@output(draft)\n\n## STEP 2: B\n\n{{draft}}\n",
    "a number that is taken": HEAD + STEP + "\n## Step 1: B\n\nGo.\n",
    "a range of steps": HEAD + STEP + "\n## Step 2-3: B\n\nGo.\n",
    "a bare word": HEAD + STEP + "```if mode = long```\n",
    "an input or a slip": PIPELINE + "  - agent: {prompt: go, output: draft}\n  - transform: {value: ctx.darft}\n",
    "a key that is there": PIPELINE + "  - transform: {value: '1', vlaue: '2'}\n",
    "a tool": PIPELINE + "  - tool: {name: file__raed, args: {path: a}}\n",
    "in quotes": PIPELINE + "  - transform: {\"vlaue\": '1'}\n",
    "permissions": meta("").replace("execute>", "excute>"),
    "all permissions": meta("").replace("permissions>", "permisions>"),
}


@pytest.mark.parametrize("text", CERTAIN_OF_NOTHING.values(), ids=list(CERTAIN_OF_NOTHING))
def test_what_is_not_certain_stays(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "p.yaml" if text.startswith("pipeline") else "a.md"
    (here / name).write_text(text)
    main(["check", name, "--fix"])
    assert (here / name).read_text() == text
    assert " → " not in capsys.readouterr().err


def test_line_ends_the_mark_and_the_mode_stay(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "a.playbook.md"
    file.write_bytes("\ufeff# T\r\n\n## Step 1: Ä\r\n\rGo.\r\n## step 2: B\rGo.".encode())
    file.chmod(0o640)
    assert main(["check", "a.playbook.md", "--fix"]) == 0
    assert file.read_bytes().decode() == "\ufeff# T\r\n\n## STEP 1: Ä\r\n\rGo.\r\n## STEP 2: B\rGo."
    assert file.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in here.iterdir()] == ["a.playbook.md"]
    assert capsys.readouterr().err.splitlines() == [
        "a.playbook.md:3: Step 1: → STEP 1:",
        "a.playbook.md:6: step 2: → STEP 2:",
        "nothing found in 1 file",
    ]


def test_what_is_left_decides(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.md").write_text("# T\n\n## Step 1: A\n\n{{nothing_sets_this}}\n")
    assert main(["check", "a.md", "--fix"]) == 0
    (here / "b.md").write_text("## Step 1: A\n\nGo\n")
    assert main(["check", "b.md", "--fix"]) == 1, "there is still no title"
    assert "PB003" in capsys.readouterr().out


def test_a_signature_that_is_void_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"<!-- rye:signed:2026-02-10T02:00:00Z:{'a' * 64}:{'b' * 86}==:{'c' * 16}|playbook:a -->"
    (here / "a.md").write_text(f"{line}\n# T\n\n## STEP 1: A\n\nGo.\n\n## Step 2: B\n\nGo.\n")
    main(["check", "a.md", "--fix"])
    assert "a.md was signed, and its signature is void now: quire sign a.md signs it again" in capsys.readouterr().err
    main(["check", "a.md", "--fix"])
    assert "void" not in capsys.readouterr().err, "nothing was changed the second time"


def _link(file: Path) -> None:
    file.rename(file.with_name("other.txt"))
    file.symlink_to("other.txt")


@pytest.mark.parametrize(
    ("protect", "reason"),
    [(_link, "is a link; fix the file that it leads to"), (lambda file: file.chmod(0o444), "is read-only")],
    ids=["link", "read-only"],
)
def test_a_file_that_is_not_to_be_written(
    here: Path, capsys: pytest.CaptureFixture[str], protect: Callable[[Path], None], reason: str
) -> None:
    file = here / "a.md"
    file.write_text("# T\n\n## Step 1: A\n\nGo.\n")
    protect(file)
    assert main(["check", "a.md", "--fix"]) == 2
    output = capsys.readouterr()
    assert f"quire: a.md {reason}" in output.err
    assert "PB004" in output.out, "it is checked all the same"
    assert file.read_text() == "# T\n\n## Step 1: A\n\nGo.\n"


def test_of_fixes_that_overlap_the_first_is_taken() -> None:
    source = Source.of("abcdef\nghi\n")
    fixes = [(Edit(Span(0, 3), "abc", "x"),), (Edit(Span(2, 4), "cd", "y"), Edit(Span(7, 8), "g", "y"))]
    fixes += [(Edit(Span(0, 3), "abc", "x"),), (Edit(Span(8, 10), "not there", "z"),), (Edit(Span(9, 10), "i", "z"),)]
    found = [Diagnostic(reader.DIRECTIVE, "", Span(0, 1), fix=Fix("mend it", fix)) for fix in fixes]
    edits = [edit for fix in chosen_fixes(source, found) for edit in fix.edits]
    assert edited("abcdef\r\nghi\r\n", source, edits) == "xdef\r\nghz\r\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_edits_may_insert_and_remove_lines(ending: str) -> None:
    text = "\ufeffone\ntwo\nthree\n".replace("\n", ending)
    source = Source.of(text)
    edits = [Edit(Span(8, 14), "three\n", ""), Edit(Span(0, 0), "", "zero\nhalf\n"), Edit(Span(2, 6), "e\ntw", "E\nTW")]
    assert edited(text, source, edits) == "\ufeffzero\nhalf\nonE\nTWo\n".replace("\n", ending)


def test_of_insertions_at_one_place_the_first_is_taken() -> None:
    source = Source.of("abc\n")
    fixes = [Fix(new, (Edit(Span(at, at), "", new),)) for at, new in ((0, "x"), (0, "y"), (3, "z"))]
    fixes.insert(2, Fix("joins", (Edit(Span(0, 1), "a", "b"),)))
    found = [Diagnostic(reader.DIRECTIVE, "", Span(0, 1), fix=fix) for fix in fixes]
    assert [fix.title for fix in chosen_fixes(source, found)] == ["x", "z"]


UNUSED = '# quire: allow PL209 because "every report has a note"\n'


def test_only_safe_fixes_are_applied_unless_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "p.yaml"
    whole = PIPELINE + "  - transform: {value: '1'}\n"
    file.write_text(UNUSED + whole)
    assert main(["check", "p.yaml", "--fix"]) == 1
    assert file.read_text() == UNUSED + whole
    assert "fix: drop the comment  (quire check --fix --unsafe)" in capsys.readouterr().out
    assert main(["check", "p.yaml", "--fix", "--unsafe"]) == 0
    assert file.read_text() == whole
    assert capsys.readouterr().err == "p.yaml:1: drop the comment\nnothing found in 1 file\n"


def test_a_fix_of_several_lines_is_told_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    comment = '<!-- quire: allow PB201 because "the reader fills it in" -->'
    text = f"# T\n\n## STEP 1: A\n\n{comment}\nWrite {{{{name}}}}.\n"
    (here / "a.playbook.md").write_text(text)
    assert main(["check", "a.playbook.md", "--strict", "--fix", "--unsafe"]) == 0
    told = "a.playbook.md:5: move the comment before the title\nnothing found in 1 file (1 allowed by comments)\n"
    assert capsys.readouterr().err == told


def test_unsafe_needs_fix(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--unsafe"]) == 2
    assert capsys.readouterr().err == "quire: --unsafe does nothing without --fix (see quire check --help)\n"


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        ("Topic", ["topic"], "topic"),
        ("tpoic", ["topic"], "topic"),
        ("topics", ["topic"], None),
        ("on-error", ["on_error"], "on_error"),
        ("Topic", ["topic", "TOPIC"], None),
        ("ab", ["abc"], None),
        ("x" * 100, ["x" * 99], None),
    ],
)
def test_names_that_are_certain(written: str, known: list[str], meant: str | None) -> None:
    fix = name_fix(written, known, Span(0, 0))
    assert fix == (replacing(Span(0, 0), written, meant) if meant else None)
    assert word_fix("topics", ["topic"], Span(0, 0)) == replacing(Span(0, 0), "topics", "topic")


def test_the_docs_list_the_codes_that_have_a_fix() -> None:
    listed = set(re.findall(r"[A-Z]{2}[0-9]{3}", INTRODUCTION.partition("--fix")[2]))
    assert listed == {row[0] for row in ROWS}


GUESSES = {
    "two wrong letters": ("{{topicks}}", "{{topic}}"),
    "a plural": ("{{topics}}", "{{topic}}"),
    "with a type": ("{{topicks:string}}", "{{topic:string}}"),
}


@pytest.mark.parametrize("wrong, right", GUESSES.values(), ids=GUESSES)
def test_a_placeholder_that_is_probably_another_needs_unsafe(
    here: Path, wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HEAD + f"## STEP 1: A\n\nOn {wrong}, {{{{topic}}}}, {{{{mode}}}}.\n"
    file = here / "a.playbook.md"
    file.write_text(text)
    main(["check", "a.playbook.md", "--fix"])
    assert file.read_text() == text
    assert "(quire check --fix --unsafe)" in capsys.readouterr().out
    assert main(["check", "a.playbook.md", "--strict", "--fix", "--unsafe"]) == 0
    assert file.read_text() == text.replace(wrong, right)


LOOP = "pipeline: p\ndescription: x\nsteps:\n"
SKIPPED = (
    "pipeline: p\ndescription: x\ndialect: quire\nsteps:\n  - transform: {value: '1', when: ctx.n > 1, output: w}\n"
)


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        (
            "a.yaml",
            LOOP + "  - for_each:\n      over: ctx.a\n      on_error: continue\n      do: {transform: {value: item}}\n",
            LOOP
            + "  - for_each:\n      collect: {transform: {value: pipe}}\n      over: ctx.a\n      on_error: continue\n"
            "      do: {transform: {value: item}}\n",
        ),
        (
            "a.yaml",
            LOOP + "  - for_each: {over: ctx.a, do: {transform: {value: item}}}\n",
            LOOP + "  - for_each: {over: ctx.a, do: {transform: {value: item}}, on_error: abort, "
            "collect: {transform: {value: pipe}}}\n",
        ),
        (
            "a.yaml",
            SKIPPED + "  - transform: {value: 'w == 1'}\n  - transform: {value: \"[ctx.w, pipe]\"}\n",
            SKIPPED + "  - transform: {value: 'get(ctx, \"w\") == 1'}\n"
            "  - transform: {value: \"[get(ctx, 'w'), pipe]\"}\n",
        ),
        (
            "a.playbook.md",
            HEAD + STEP + '```if mode == "long"```\n### STEP 1a: L\nMore.\n\n## STEP 2: B\n\nOn.\n',
            HEAD + STEP + '```if mode == "long"```\n### STEP 1a: L\nMore.\n\n```endif```\n\n## STEP 2: B\n\nOn.\n',
        ),
        (
            "a.playbook.md",
            HEAD + STEP + '```if mode == "long"```\n### STEP 1a: L\nMore.',
            HEAD + STEP + '```if mode == "long"```\n### STEP 1a: L\nMore.\n\n```endif```',
        ),
    ],
)
def test_what_is_missing_is_added_with_unsafe(here: Path, name: str, text: str, right: str) -> None:
    file = here / name
    file.write_text(text)
    main(["check", name, "--fix"])
    assert file.read_text() == text
    assert main(["check", name, "--strict", "--fix", "--unsafe"]) == 0
    assert file.read_text() == right


def test_a_misspelt_function_in_an_expression_with_another_mistake_stays(here: Path) -> None:
    file = here / "p.yaml"
    file.write_text(PIPELINE + '  - transform: {value: "cont(ctx.a, 1)"}\n')
    main(["check", "p.yaml", "--fix", "--unsafe"])
    assert "cont(ctx.a, 1)" in file.read_text()


def test_a_misspelt_tool_of_a_playbook_is_suggested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.playbook.md").write_text('# T\n\n## STEP 1: A\n\n@tool(quire, file__writ, {"path": "x"})\n')
    main(["check", "a.playbook.md"])
    assert "did you mean file__write?" in capsys.readouterr().out


@pytest.mark.parametrize(
    "inputs, wrong",
    [
        (("draft2",), "draft1"),  # numbers are told apart on purpose
        (("topica", "topicb"), "topicc"),  # two are near
        (("topic",), "subject"),
        (("ab",), "aa"),  # too short for a guess
    ],
)
def test_a_placeholder_is_not_guessed_at(here: Path, inputs: tuple[str, ...], wrong: str) -> None:
    declared = "".join(f"- `{name}` (string): x\n" for name in inputs)
    used = " ".join(f"{{{{{name}}}}}" for name in inputs)
    text = f"# T\n\n## INPUTS\n\n{declared}\n## STEP 1: A\n\nOn {used} {{{{{wrong}}}}}.\n"
    file = here / "a.playbook.md"
    file.write_text(text)
    main(["check", "a.playbook.md", "--fix", "--unsafe"])
    assert file.read_text() == text


def test_a_placeholder_is_not_replaced_with_one_that_is_set_later(here: Path) -> None:
    later = "## STEP 2: B\n\nGo.\n@output(draft)\n\n## STEP 3: C\n\nOn {{draft}}.\n"
    text = f"# T\n\n## STEP 1: A\n\nOn {{{{drfat}}}}.\n\n{later}"
    file = here / "a.playbook.md"
    file.write_text(text)
    main(["check", "a.playbook.md", "--fix", "--unsafe"])
    assert file.read_text() == text
