"""Flowcharts of pipelines: every primitive is drawn, and nothing that a line names is pulled into a box."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from quire.display.flowchart_drawing import mermaid
from quire.expr import compile, parse
from quire.library.document import read
from quire.plan.nodes import (
    Plan,
    Sequence,
    Step,
    Template,
    Work,
)
from quire.plan.pipeline_work import (
    Agent,
    Call,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    OnError,
    Parallel,
    Select,
    Transform,
)
from quire.source import Source

PAGE = """pipeline: all
steps:
  - agent: {prompt: Hi, output: review}
  - match:
      on: review.passed
      cases: {"True": {pipeline: fine}, "False": {pipeline: bad}}
      default: {pipeline: other}
  - fold: {over: ctx.items, init: "0", do: {transform: {value: acc + item}}, output: total, max_items: 3}
  - for_each:
      items: [1, 2]
      max_parallel: 4
      on_error: retry(2)
      do:
        parallel:
          on_error: continue
          branches:
            a-b: {transform: {value: pipe}}
            b: {tool: {name: file__read, args: {path: x}}}
          collect: {transform: {value: pipe}}
      collect: {call: {pipeline: fine}}
  - match: {on: pipe, cases: {x: {pipeline: fine}}}
  - shell: {command: ls}
  - tool: {name: ask, args: {prompt: ok?}}
"""


def test_every_primitive() -> None:
    assert mermaid(read(Source.of(PAGE, "all.yaml")).runnable()) == (
        "flowchart TD\n"
        '    start(["all"])\n'
        '    s1model["Step 1 - review (model)"]\n'
        "    start --> s1model\n"
        '    s2match{"Step 2 - Choose (review.passed)"}\n'
        "    s1model --> s2match\n"
        '    s2m1{{"Step 2 runs fine"}}\n'
        '    s2match -->|"True"| s2m1\n'
        '    s2m2{{"Step 2 runs bad"}}\n'
        '    s2match -->|"False"| s2m2\n'
        '    s2m3{{"Step 2 runs other"}}\n'
        '    s2match -->|"otherwise"| s2m3\n'
        '    subgraph s3fold["Step 3 - total (one by one over ctx.items, the first 3)"]\n'
        '        s3dovalue("Step 3.do - Compute (acc + item)")\n'
        "    end\n"
        "    s2m1 --> s3dovalue\n"
        "    s2m2 --> s3dovalue\n"
        "    s2m3 --> s3dovalue\n"
        '    s3dovalue -->|"next item"| s3dovalue\n'
        '    subgraph s4each["Step 4 - For each item (each of 2 given items, 4 at once, '
        'failures tried 2 times more)"]\n'
        '        subgraph s4dopar["Step 4.do - Side by side (side by side, failures dropped)"]\n'
        '            s4dob1value("Step 4.do.a-b - Compute (pipe)")\n'
        '            s4dob2tool[["Step 4.do.b - file#95;#95;read (tool file#95;#95;read)"]]\n'
        "        end\n"
        '        s4docollectvalue("Step 4.do.collect - Compute (pipe)")\n'
        "    end\n"
        '    s3dovalue -->|"a-b"| s4dob1value\n'
        '    s3dovalue -->|"b"| s4dob2tool\n'
        "    s4dob1value --> s4docollectvalue\n"
        "    s4dob2tool --> s4docollectvalue\n"
        '    s4collectcall{{"Step 4.collect - fine (runs fine)"}}\n'
        "    s4docollectvalue --> s4collectcall\n"
        '    s5match{"Step 5 - Choose (pipe)"}\n'
        "    s4collectcall --> s5match\n"
        '    s5m1{{"Step 5 runs fine"}}\n'
        '    s5match -->|"x"| s5m1\n'
        '    s6tool[["Step 6 - shell (tool shell)"]]\n'
        "    s5m1 --> s6tool\n"
        '    s7ask[/"Step 7 - ask (asks)"/]\n'
        "    s6tool --> s7ask\n"
        '    done(["done"])\n'
        "    s7ask --> done\n"
    )


def test_a_fold_over_boxes_goes_back_to_its_first_step() -> None:
    inner = (
        "{for_each: {items: [1], on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: pipe}}}}"
    )
    page = f"pipeline: p\nsteps:\n  - fold: {{items: [1], init: '0', do: {inner}, output: x}}\n"
    drawn = mermaid(read(Source.of(page, "p.yaml")).runnable())
    assert '    s1docollectvalue -->|"next item"| s1dodovalue\n' in drawn


@given(st.text(max_size=30) | st.sampled_from(['"]', "end", "%%{init: {}}%%", "<script>", "-->", "|", "\x1b[2J"]))
def test_no_text_gets_out_of_its_label(text: str) -> None:
    formula = Formula(text, compile(parse("1")))
    call = Call(text)
    leaf = Step(1, text, text, work=Transform(formula))
    works: tuple[Work, ...] = (
        Invoke(text),
        Agent(Template((text,)), identity=text),
        call,
        Select(formula, ((text, call),), call),
        Fold(formula, formula, leaf),
        ForEach(Literal([text]), leaf, leaf, OnError("continue")),
        Parallel(((text, leaf), ("b", leaf)), leaf, OnError("abort")),
    )
    steps = tuple(Step(at, str(at), text, work=work) for at, work in enumerate(works, 1))
    drawn = mermaid(Plan(text, "pipeline", (), Sequence(steps)))
    label = r'"(?:[^"#;:`<>&%{}|\[\]\x00-\x1f\x7f-\x9f\ud800-\udfff]|#\d+;)*"'
    shapes = rf"\[{label}\]|\[\[{label}\]\]|\[/{label}/\]|\{{{label}\}}|\{{\{{{label}\}}\}}|\({label}\)|\(\[{label}\]\)"
    edge = rf"\w+ -->(?:\|{label}\|)? \w+"
    line = re.compile(rf" +(?:\w+(?:{shapes})|subgraph \w+\[{label}\]|end|{edge})")
    first, *rest = drawn.removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    assert [one for one in rest if not line.fullmatch(one)] == []
    # Lines between nodes stand outside of all boxes.
    depth = 0
    for one in rest:
        depth += one.strip().startswith("subgraph ") - (one.strip() == "end")
        assert depth == 0 or "-->" not in one
    assert depth == 0


DIALECT = """pipeline: odd
dialect: quire
steps:
  - for_each: {items: [1], on_error: continue, do: {fail: {message: x}}, collect: {transform: {value: pipe}}}
  - steps:
      on_error: retry(2), continue
      do: [{fail: {message: x, when: pipe == 1}}, {agent: {prompt: hi, timeout: 30s, on_error: retry(1)}}]
  - steps: [{fail: {message: x, when: pipe == 2}}]
  - stop: {}
"""


def test_survived_failures_go_on_and_ends_have_no_line() -> None:
    drawn = mermaid(read(Source.of(DIALECT, "odd.yaml")).runnable())
    assert 's1dofail(["Step 1.do - Fail (fails, survived)"])' in drawn
    assert "s1dofail --> s1collectvalue" in drawn
    assert 'subgraph s2steps["Step 2 - Block (3 tries, failures survived)"]' in drawn
    assert 's2s2model["Step 2.2 - Ask the model (model, 2 tries, at most 30 s)"]' in drawn
    assert "s2s1fail -->" not in drawn
    assert 's3s1fail(["Step 3.1 - Fail (fails here)"])' in drawn
    assert "s4stop -->" not in drawn and "done(" not in drawn
