"""Flowcharts: every way through a plan is drawn, and no text of a document can get out of its label."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.display.flowchart_drawing import escaped, mermaid
from quire.plan.nodes import (
    Artifact,
    Ask,
    Case,
    Comparison,
    Match,
    Plan,
    Sequence,
    Step,
    Template,
    Think,
    UseTool,
)

TEXT = Template(("text",))
THINK = Think(TEXT)
LOW = Comparison("tier", "==", "low")


def plan(*steps: Step, title: str = "Title", artifact: Artifact | None = None) -> Plan:
    return Plan(title, "playbook", (), Sequence(steps), artifact=artifact)


def arm(*labels: str) -> Sequence:
    return Sequence(tuple(Step(at, label, label, work=THINK) for at, label in enumerate(labels, 1)))


def edges(text: str) -> set[tuple[str, str, str]]:
    found = re.finditer(r"^    (\w+) -->(?:\|\"(.*)\"\|)? (\w+)$", text, re.MULTILINE)
    return {(edge[1], edge[2] or "", edge[3]) for edge in found}


def test_a_chain() -> None:
    artifact = Artifact(Template(("json",)))
    steps = (Step(1, "1", "Ask", ask=Ask("confirm", TEXT)), Step(2, "2", "Call", work=UseTool("shop", "buy", {})))
    assert mermaid(plan(*steps, artifact=artifact)) == (
        "flowchart TD\n"
        '    start(["Title"])\n'
        '    s1ask[/"Step 1 - Ask (asks yes or no)"/]\n'
        "    start --> s1ask\n"
        '    s2tool[["Step 2 - Call (tool shop/buy)"]]\n'
        "    s1ask --> s2tool\n"
        '    done(["done, gives json"])\n'
        "    s2tool --> done\n"
    )


@pytest.mark.parametrize(
    ("match", "work", "expected"),
    [
        pytest.param(
            Match((Case(LOW, arm("1a", "1b")), Case(None, arm("1c"))), True),
            None,
            {
                ("start", "", "s1case"),
                ("s1case", "tier == #34;low#34;", "s1c1_1model"),
                ("s1c1_1model", "", "s1c1_2model"),
                ("s1case", "else", "s1c2_1model"),
                ("s1c1_2model", "", "done"),
                ("s1c2_1model", "", "done"),
            },
            id="else: both arms join",
        ),
        pytest.param(
            Match((Case(LOW, arm("1a")),), True),
            None,
            {
                ("start", "", "s1case"),
                ("s1case", "tier == #34;low#34;", "s1c1_1model"),
                ("s1case", "otherwise", "done"),
                ("s1c1_1model", "", "done"),
            },
            id="no else: a way past",
        ),
        pytest.param(
            Match((Case(LOW, arm("1a")),), True),
            THINK,
            {
                ("start", "", "s1if"),
                ("s1if", "yes", "s1model"),
                ("s1if", "no", "done"),
                ("s1model", "", "s1case"),
                ("s1case", "tier == #34;low#34;", "s1c1_1model"),
                ("s1c1_1model", "", "done"),
            },
            id="decided first: the work can be skipped",
        ),
        pytest.param(
            Match((Case(LOW, arm("1a")),), False),
            THINK,
            {
                ("start", "", "s1model"),
                ("s1model", "", "s1case"),
                ("s1case", "tier == #34;low#34;", "s1c1_1model"),
                ("s1case", "otherwise", "done"),
                ("s1c1_1model", "", "done"),
            },
            id="decided by the work",
        ),
        pytest.param(
            Match((Case(LOW, Sequence(())),), True),
            None,
            {("start", "", "s1case"), ("s1case", "tier == #34;low#34;", "done"), ("s1case", "otherwise", "done")},
            id="an empty arm",
        ),
    ],
)
def test_branches(match: Match, work: Think | None, expected: set[tuple[str, str, str]]) -> None:
    assert edges(mermaid(plan(Step(1, "1", "Choose", work=work, match=match)))) == expected


HOSTILE = [
    '"]',
    "%%{init: {}}%%",
    "`**b**`",
    "<script>",
    "#quot;",
    ";",
    "\n",
    "-->",
    "|",
    "\x1b[2J",
    "\ud800",
    "ﬂ°°34¶ß",
]


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=10)), max_size=8).map("".join))
def test_no_text_gets_out_of_its_label(text: str) -> None:
    test = Comparison(text, "!=", text)
    steps = (
        Step(1, text, text, ask=Ask("select", Template((text,))), work=UseTool(text, text, {})),
        Step(2, "2", text, work=THINK, match=Match((Case(test, arm(text)),), True)),
    )
    drawn = mermaid(plan(*steps, title=text, artifact=Artifact(Template((text,)))))
    label = r'"(?:[^"#;:`<>&%{}|\[\]\x00-\x1f\x7f-\x9f\ud800-\udfff]|#\d+;)+"'
    box = rf"\w+(?:\[{label}\]|\[\[{label}\]\]|\[/{label}/\]|\{{{label}\}}|\(\[{label}\]\))"
    line = re.compile(rf"    (?:{box}|\w+ -->(?:\|{label}\|)? \w+)")
    first, *rest = drawn.removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    assert [one for one in rest if not line.fullmatch(one)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, 3 (of 4)", "plain words, 3 (of 4)"),
        ('say "hi"', "say #34;hi#34;"),
        ("a #b; c", "a #35;b#59; c"),
        ("Größe 大小", "Größe 大小"),
        ("a\n  b\tc", "a b c"),
        ("x" * 90, "x" * 79 + "#8230;"),
    ],
)
def test_escaping(text: str, expected: str) -> None:
    assert escaped(text) == expected
