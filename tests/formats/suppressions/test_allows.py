"""Comments hide warnings, lints and notes in the part that they cover, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quire.cli.fixes import edited
from quire.diagnostics import Code, Diagnostic
from quire.formats import all_codes
from quire.formats.suppressions import LONGEST_REASON, MOST, Applied, allows_of, applied
from quire.library.check import DocumentCheck
from quire.source import NOWHERE, Source, Span

REPORT = "---\nschema: report\nfields:\n  note: {type: string, required: false}\n"
HEAD = "pipeline: p\ndescription: x\nsteps:\n  - agent: {prompt: go, schema: report, output: r}\n"
STEP = "  - transform:\n      value: ctx.r.note\n"
ALLOW = 'quire: allow PL209 because "every report has a note"'
PLAYBOOK = "# T\n\n## STEP 1: A\n\nWrite {{name}}.\n\n## STEP 2: B\n\nSend {{name}}.\n"


def everywhere(code: Code) -> bool:
    return True


def shown(name: str, text: str, was_searched: Callable[[Code], bool] = everywhere) -> list[tuple[str, int]]:
    source = Source.of(text, name)
    result = applied(source, DocumentCheck()._written(source), all_codes, was_searched)
    return [(one.code.id, source.position(one.span.start).line) for one in result.diagnostics]


PIPELINES = {
    "no comment": (HEAD + STEP + STEP + REPORT, [("PL209", 6), ("PL209", 8)]),
    "above a step": (f"{HEAD}  # {ALLOW}\n{STEP}{STEP}{REPORT}", [("PL209", 9)]),
    "above a step, with other comments and a blank line between": (
        f"{HEAD}  # {ALLOW}\n\n  # the note\n{STEP}{STEP}{REPORT}",
        [("PL209", 11)],
    ),
    "after the last step": (f"{HEAD}{STEP}  # {ALLOW}\n{REPORT}", [("PL209", 6), ("AL103", 7)]),
    "above steps": (f"{HEAD}{STEP}{STEP}{REPORT}".replace("steps:", f"# {ALLOW}\nsteps:"), []),
    "behind the line": (f"{HEAD}{STEP.rstrip()} # {ALLOW}\n{STEP}{REPORT}", [("PL209", 8)]),
    "behind the line before": (f"{HEAD}  - transform: # {ALLOW}\n      value: ctx.r.note\n{REPORT}",
                               [("AL103", 5), ("PL209", 6)]),
    "above the file": (f"# {ALLOW}\n{HEAD}{STEP}{STEP}{REPORT}", []),
    "above the file, below others": (f"# of Kim\n\n# {ALLOW}\n{HEAD}{STEP}{STEP}{REPORT}", []),
    "behind another comment": (f"{HEAD}  # sure # {ALLOW}\n{STEP}{REPORT}", []),
    "twice": (f"# {ALLOW}\n{HEAD}  # {ALLOW}\n{STEP}{REPORT}", [("AL103", 6)]),
    "twice above a step": (f"{HEAD}  # {ALLOW}\n  # {ALLOW}\n{STEP}{REPORT}", [("AL103", 6)]),
    "above steps, and above the second one": (
        f"{HEAD}{STEP}  # {ALLOW}\n{STEP}{REPORT}".replace("steps:", f"# {ALLOW}\nsteps:"), [("AL103", 8)]
    ),
    "of a prompt": (f"{HEAD}{STEP}  - agent:\n      prompt: |\n        # {ALLOW}\n        Go.\n{REPORT}",
                    [("PL209", 6), ("AL105", 9)]),
    "of a quoted text": (f"{HEAD}{STEP}  - agent: {{prompt: 'a # quire: allow PL209 x'}}\n{REPORT}",
                         [("PL209", 6), ("AL105", 7)]),
    "on the first line of a block": (
        f"{HEAD}  - transform:\n      value: > # {ALLOW}\n        ctx.r.note\n{REPORT}",
        [("AL103", 6), ("PL209", 7)],
    ),
    "below a block": (f"{HEAD}  - agent:\n      prompt: |\n        Go.\n\n  # {ALLOW}\n{STEP}{REPORT}", []),
    "of the text of a comment": (f"{HEAD}  # see quire: allow PL209\n{STEP}{REPORT}", [("PL209", 7)]),
    "without space": (f"{HEAD}  #{ALLOW}\n{STEP}{REPORT}", []),
    "in small letters": (f"{HEAD}  # {ALLOW.replace('PL209', 'pl209')}\n{STEP}{REPORT}", []),
    "another order": (f"{HEAD}  # quire: 2 is the version\n{STEP}{REPORT}", [("PL209", 7)]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), PIPELINES.values(), ids=PIPELINES)
def test_what_a_comment_of_a_pipeline_covers(text: str, found: list[tuple[str, int]]) -> None:
    assert shown("p.yaml", text) == found


def test_a_second_comment_names_the_line_of_the_first() -> None:
    source = Source.of(f"{HEAD}  # {ALLOW}\n  # {ALLOW}\n{STEP}{REPORT}", "p.yaml")
    (found,) = applied(source, DocumentCheck()._written(source), all_codes, everywhere).diagnostics
    assert found.message == "the comment on line 5 already hides PL209 here, so this one hides nothing"


NAMED = 'quire: allow PB201 because "the reader fills it in"'
PLAYBOOKS = {
    "before the title": (f"<!-- {NAMED} -->\n{PLAYBOOK}", []),
    "in step 2": (f"<!-- {NAMED.replace('because', 'in step 2 because')} -->\n{PLAYBOOK}", [("PB201", 6)]),
    "in no step": (
        f"<!-- {NAMED.replace('because', 'in step 7 because')} -->\n{PLAYBOOK}",
        [("AL103", 1), ("PB201", 6), ("PB201", 10)],
    ),
    "in a step": (
        PLAYBOOK.replace("Send", f"<!-- {NAMED} -->\nSend"),
        [("PB201", 5), ("AL105", 9), ("PB201", 10)],
    ),
    "in the description": (
        PLAYBOOK.replace("# T\n", f"# T\n<!-- {NAMED} -->\n"),
        [("AL105", 2), ("PB201", 6), ("PB201", 10)],
    ),
    "in a fence": (
        PLAYBOOK + f"\n```markdown\n<!-- {NAMED} -->\n```\n",
        [("PB201", 5), ("PB201", 9)],
    ),
    "in a sentence": (PLAYBOOK + f"\nWrite `<!-- {NAMED} -->` there.\n", [("PB201", 5), ("PB201", 9)]),
    "before the title, with text": (f"By Kim.\n<!-- {NAMED} -->\n{PLAYBOOK}", [("PB303", 1)]),
    "behind text before the title": (
        f"By Kim. <!-- {NAMED} -->\n{PLAYBOOK}",
        [("PB303", 1), ("AL105", 1), ("PB201", 6), ("PB201", 10)],
    ),
    "in the inputs": (
        "# T\n\n## INPUTS\n\n<!-- quire: allow PB229 because \"kept for later\" -->\n- `n` (strng): x\n\n"
        "## STEP 1: A\n\nGo {{n}}.\n",
        [],
    ),
    "in the inputs, above another": (
        "# T\n\n## INPUTS\n\n<!-- quire: allow PB229 because \"kept for later\" -->\n- `m` (string): x\n"
        "- `n` (strng): x\n\n## STEP 1: A\n\nGo {{n}}, {{m}}.\n",
        [("AL103", 5), ("PB229", 7)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), PLAYBOOKS.values(), ids=PLAYBOOKS)
def test_what_a_comment_of_a_playbook_covers(text: str, found: list[tuple[str, int]]) -> None:
    assert shown("a.playbook.md", text) == found


def test_a_substep_has_a_label() -> None:
    text = (
        "<!-- quire: allow PB201 in step 1a because \"the reader fills it in\" -->\n# T\n\n## INPUTS\n\n"
        "- `mode` (enum: a, b): x\n\n## STEP 1: A\n\nGo {{mode}} {{x}}.\n\n```if mode == \"a\"```\n"
        "### STEP 1a: L\nMore {{x}}.\n### STEP 1b: M\nMore {{x}}.\n```else```\n### STEP 1c: N\n{{x}}.\n```endif```\n"
    )  # fmt: skip
    assert shown("a.playbook.md", text) == [("PB201", 10), ("PB201", 16), ("PB201", 19)]


def test_a_substep_ends_at_the_marker_after_it() -> None:
    text = (
        '<!-- quire: allow PB201 in step 1a because "the reader fills it in" -->\n# T\n\n## INPUTS\n\n'
        '- `mode` (enum: a, b): x\n\n## STEP 1: A\n\nGo {{mode}}.\n\n```if mode == "a"```\n### STEP 1a: L\n{{x}}.\n'
        "```endif```\n\nAt last {{x}}.\n"
    )
    assert ("PB201", 17) in shown("a.playbook.md", text)
    assert ("PB201", 14) not in shown("a.playbook.md", text)


def test_a_comment_does_not_cover_the_first_letter_after_its_part() -> None:
    source = Source.of(f"a: 1\n# {ALLOW}\nb: 1\nc: 1\n", "p.yaml")
    (allow,) = allows_of(source)
    code = next(one for one in all_codes() if one.id == "PL209")
    places = [source.text.index(letter) for letter in ("a:", "b:", "c:")]
    assert [allow.hides(Diagnostic(code, "", Span(at, at + 1))) for at in places] == [False, True, False]


DIRECTIVE = """# D

```xml
<directive name="d" version="1.0.0">
  <metadata>
    <description>x</description>
    <category>c</category>
    <author>a</author>
    <model tier="low" />
    <permissions>
      <execute><tool>rye.file-system.*</tool></execute>
    </permissions>
  </metadata>
  <inputs>
    <input name="one" type="strng">x</input>
    <input name="two" type="strng">x</input>
  </inputs>
</directive>
```

Write on {input:one} and {input:two}.
"""
TYPED = '<!-- quire: allow DR107 because "the type is ours" -->'
DIRECTIVES = {
    "none": (DIRECTIVE, [15, 16], []),
    "before the title": (f"{TYPED}\n{DIRECTIVE}", [], []),
    "before the fence": (DIRECTIVE.replace("# D\n", f"# D\n\n{TYPED}\n"), [], []),
    "before the root": (DIRECTIVE.replace("```xml\n", f"```xml\n{TYPED}\n"), [], []),
    "above an element": (DIRECTIVE.replace('    <input name="one"', f'    {TYPED}\n    <input name="one"'), [17], []),
    "above inputs": (DIRECTIVE.replace("  <inputs>", f"  {TYPED}\n  <inputs>"), [], []),
    "behind an element": (DIRECTIVE.replace('"strng">x</input>\n  ', f'"strng">x</input> {TYPED}\n  ', 1), [16], []),
    "above another": (DIRECTIVE.replace("  <metadata>", f"  {TYPED}\n  <metadata>"), [16, 17], [("AL103", 5)]),
    "at the end": (DIRECTIVE.replace("  </inputs>", f"  {TYPED}\n  </inputs>"), [15, 16], [("AL103", 17)]),
    "in permissions": (
        DIRECTIVE.replace("      <execute>", f"      {TYPED}\n      <execute>"),
        [16, 17],
        [("AL105", 11)],
    ),
    "in a text": (DIRECTIVE.replace('type="strng">x', f'type="strng">{TYPED}x', 1), [15, 16], [("AL105", 15)]),
    "in the body": (DIRECTIVE + f"\n{TYPED}\n", [15, 16], [("AL105", 23)]),
    "in a fence of the body": (DIRECTIVE + f"\n```\n{TYPED}\n```\n", [15, 16], []),
    "in an example": (
        DIRECTIVE.replace("  <inputs>", f"  <process><example>{TYPED}</example></process>\n  <inputs>"),
        [16, 17],
        [],
    ),
}


@pytest.mark.parametrize(("text", "typed", "about"), DIRECTIVES.values(), ids=DIRECTIVES)
def test_what_a_comment_of_a_directive_covers(text: str, typed: list[int], about: list[tuple[str, int]]) -> None:
    found = shown("d.md", text)
    assert [line for code, line in found if code == "DR107"] == typed
    assert [(code, line) for code, line in found if code.startswith("AL")] == about


KNOWLEDGE = '```yaml\nname: names\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda.\n'
BEFORE = '# quire: allow KN102 because "it is a heading"'


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("names.md", f"# Names\n\n{KNOWLEDGE}", [("KN102", 1)]),
        ("names.md", f"# Names\n\n{KNOWLEDGE}".replace("name: names", f"{BEFORE}\nname: names"), []),
        (
            "names.yaml",
            f'{BEFORE}\nname: names\ntitle: N\nversion: "1.0.0"\nentry_type: x\nbody: Ada\n',
            [("AL103", 1)],
        ),
        ("names.yaml", f'{BEFORE}\nname: names\ntitle: N\nversion: "1.0.0"\nentry_type: x\n', [("AL105", 1)]),
    ],
)
def test_comments_of_knowledge(name: str, text: str, found: list[tuple[str, int]]) -> None:
    assert shown(f".ai/knowledge/{name}", text) == found


FORMS = {
    "quire: allow PL209": ("AL101", "the comment has no reason"),
    "quire: allow PL209 because": ("AL101", "double quotes"),
    "quire: allow PL209 because it is so": ("AL101", "double quotes"),
    "quire: allow PL209 because 'it is so'": ("AL101", "double quotes"),
    'quire: allow PL209 because ""': ("AL101", "the reason is empty"),
    'quire: allow PL209 because " - "': ("AL101", "the reason is empty"),
    'quire: allow PL209 because "so" really': ("AL101", "double quotes"),
    'quire: allow PL209, PL210 because "so"': ("AL101", "nothing else"),
    "quire: allow": ("AL101", "names no code"),
    'quire: allow because "so"': ("AL101", "names no code"),
    "quire: ignore PL209": ("AL101", "ignore is not a word"),
    'quire: allow PL209 in step 2 because "so"': ("AL101", "in step cannot stand here"),
    f'quire: allow PL209 because "{"x" * (LONGEST_REASON + 1)}"': ("AL101", "the reason has 501 characters"),
    'quire: allow PL2009 because "so"': ("AL102", "unknown code PL2009"),
    'quire: allow optional-field because "so"': ("AL102", "unknown code OPTIONAL-FIELD"),
    'quire: allow PL210 because "so"': ("AL103", "PL210 is not found"),
    'quire: allow PL009 because "so"': ("AL104", "PL009 is an error"),
    'quire: allow AL103 because "so"': ("AL104", "AL103 is an error"),
}


@pytest.mark.parametrize(("comment", "problem"), FORMS.items(), ids=[one[:50] for one in FORMS])
def test_a_comment_that_is_wrong(comment: str, problem: tuple[str, str]) -> None:
    source = Source.of(f"{HEAD}  # {comment}\n  - transform: {{value: '1'}}\n{REPORT}", "p.yaml")
    result = applied(source, (), all_codes, everywhere)
    (found,) = result.diagnostics
    assert (found.code.id, problem[1] in found.message) == (problem[0], True), found.message
    assert source.position(found.span.start).line == 5


@pytest.mark.parametrize(("comment", "help"), [("PL290", "PL209"), ("optional-field", "PL209"), ("ZZ", "")])
def test_an_unknown_code_gets_the_nearest_one(comment: str, help: str) -> None:
    source = Source.of(f'# quire: allow {comment} because "so"\n{HEAD}', "p.yaml")
    codes = [one for one in all_codes() if one.id in ("PL209", "PL101")]
    (found,) = applied(source, (), lambda: codes, everywhere).diagnostics
    assert found.help == (f"did you mean {help}?" if help else "")


def test_an_error_is_never_hidden() -> None:
    text = f'# quire: allow PL009 because "so"\n{HEAD}  - nothing: 1\n{REPORT}'
    assert [code for code, _ in shown("p.yaml", text)] == ["AL104", "PL009"]


def test_nothing_is_unused_in_a_document_that_cannot_be_read() -> None:
    text = f"{HEAD}  # {ALLOW}\n  - transform: {{value: '1'}}\n  - nothing: 1\n{REPORT}"
    assert [code for code, _ in shown("p.yaml", text)] == ["PL009"]


def test_nothing_is_unused_that_was_not_searched() -> None:
    text = f"{HEAD}  # {ALLOW}\n  - transform: {{value: ctx.r}}\n{REPORT}"
    assert shown("p.yaml", text, lambda code: code.id != "PL209") == []
    assert shown("p.yaml", text, lambda code: code.id != "PL210") == [("AL103", 5)]


def test_what_only_quire_has_is_searched_with_portable_alone() -> None:
    text = '<!-- quire: allow PB310 because "we have Quire" -->\n# T\n\n## STEP 1: A\n\nGo.\n@model(low)\n'
    source = Source.of(text, "a.playbook.md")
    code = next(one.code.id for one in DocumentCheck(portable=True)._written(source) if not one.code.portable)
    source = Source.of(text.replace("PB310", code), "a.playbook.md")
    ids = [[one.code.id for one in DocumentCheck(portable=portable).of(source)] for portable in (True, False)]
    assert code not in ids[0]
    assert "AL103" not in (*ids[0], *ids[1])


def test_a_finding_without_a_place_is_hidden_by_a_comment_for_the_file_alone() -> None:
    code = next(one for one in all_codes() if one.id == "PL209")
    found = (Diagnostic(code, "somewhere", NOWHERE),)

    def left(text: str) -> list[str]:
        return [one.code.id for one in applied(Source.of(text, "p.yaml"), found, all_codes, everywhere).diagnostics]

    assert left(f"# {ALLOW}\n{HEAD}") == []
    assert left(HEAD.replace("pipeline: p", f"pipeline: p # {ALLOW}")) == ["PL209", "AL103"]


def test_a_comment_does_not_hide_its_own_letters() -> None:
    allow = '# quire: allow TX101 because "they are \u200bseen"'
    head = HEAD.replace("go", "g\u200bo")
    assert shown("p.yaml", f"{allow}\n{head}{REPORT}") == [("TX101", 1)]


def test_hidden_findings_and_comments_are_kept_as_data() -> None:
    source = Source.of(f"{HEAD}  # {ALLOW}\n{STEP}{REPORT}", "p.yaml")
    result: Applied = applied(source, DocumentCheck()._written(source), all_codes, everywhere)
    (hidden,) = result.hidden
    (allow,) = allows_of(source)
    assert hidden.allow == allow
    assert hidden.finding.code.id == allow.code == "PL209"
    assert allow.reason == "every report has a note"
    assert source.text[allow.span.start : allow.span.end] == f"# {ALLOW}"


def test_comments_do_not_change_how_a_document_is_read() -> None:
    from quire.library.document import read
    from quire.plan.nodes import Plan

    def plan(name: str, text: str) -> Plan:
        document = read(Source.of(text, name))
        assert document.plan
        return document.plan

    bare = plan("a.playbook.md", PLAYBOOK)
    noted = plan("a.playbook.md", f"<!-- {NAMED} -->\n{PLAYBOOK}")
    assert (bare.description, bare.system) == (noted.description, noted.system)
    texts = [[step.work for step in one.body.steps] for one in (bare, noted)]
    assert texts[0] == texts[1]


def test_there_is_a_limit() -> None:
    text = HEAD + f"  # {ALLOW}\n" * (MOST + 5) + STEP + REPORT
    source = Source.of(text, "p.yaml")
    assert len(allows_of(source)) == MOST
    assert [one.code.id for one in applied(source, (), all_codes, lambda _: False).diagnostics] == ["AL101"]


def test_an_unused_comment_has_a_fix_that_is_not_safe() -> None:
    source = Source.of(f"{HEAD}  # {ALLOW}\n  - transform: {{value: '1'}}\n{REPORT}", "p.yaml")
    (found,) = applied(source, (), all_codes, everywhere).diagnostics
    assert found.fix
    (edit,) = found.fix.edits
    assert not found.fix.safe
    assert edit.old == f"  # {ALLOW}\n"
    assert edit.span == Span(len(HEAD), len(HEAD) + len(edit.old))


SIGNED = "<!-- rye:signed:x -->\n"


@pytest.mark.parametrize(
    ("text", "place", "where"),
    [
        (PLAYBOOK, "Send", " in step 2"),
        (PLAYBOOK, "## STEP 2", " in step 1"),
        (PLAYBOOK.replace("# T\n", "# T\n\nAbout.\n"), "About", ""),
        (SIGNED + PLAYBOOK, "Write", " in step 1"),
    ],
)
def test_a_comment_in_a_step_can_be_moved_before_the_title(text: str, place: str, where: str) -> None:
    source = Source.of(text.replace(place, f"<!-- {NAMED} -->\n{place}", 1), "a.playbook.md")
    (found,) = (one for one in applied(source, (), all_codes, lambda _: False).diagnostics if one.code.id == "AL105")
    assert found.fix and not found.fix.safe
    signature = SIGNED if text.startswith(SIGNED) else ""
    moved = f"{signature}<!-- {NAMED.replace(' because', f'{where} because')} -->\n{text.removeprefix(signature)}"
    assert edited(source.text, source, found.fix.edits) == moved
    assert "AL105" not in [code for code, _ in shown("a.playbook.md", moved)]


@pytest.mark.parametrize(
    "comment", [f"so <!-- {NAMED} -->", "<!-- quire: allow PB201 -->", "<!-- quire: ignore PB201 -->"]
)
def test_a_comment_that_is_wrong_or_not_alone_is_not_moved(comment: str) -> None:
    source = Source.of(PLAYBOOK.replace("Send", f"{comment}\nSend"), "a.playbook.md")
    (found,) = (one for one in applied(source, (), all_codes, lambda _: False).diagnostics if one.code.id == "AL105")
    assert found.fix is None
