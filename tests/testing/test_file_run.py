"""Cases of all formats, run as a user would write them: the outcome and the codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.testing.bench import only, run, summary, told

from quire.engine.proven_bounds import ProvenBounds
from quire.formats.test.parse import parse
from quire.runs import proven
from quire.source import Source
from quire.testing.file_run import run_file

HEAD = """
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": 'Three of them. {"best": "Bread."}'}
cases:
  - name: it
"""


def case(text: str) -> str:
    return HEAD + "\n".join(f"    {line}" for line in text.strip("\n").split("\n")) + "\n"


PASSING = {
    "a yes": """
answers: {"2": "yes"}
model: {"3a": "Bread, then."}
expect:
  output: "Bread, then."
  steps: {"1": completed, "3a": completed, "3b": skipped}
  asked: {"2": "Take this one: Bread.?"}
  named: {best: Bread., choice: "yes"}
  prompts:
    "1": {contains: [a bakery, dry, You write short lines.], not_contains: warm}
    "3a": {matches: "(?i)polish this line: bread"}
  used: {model_calls: 2, tool_calls: 0, seconds: {most: 1}}
  that: [!expr "named.choice == 'yes'", !expr "inputs.tone == 'dry'"]
""",
    "a no": """
answers: {"2": "no"}
model: {"3b": Flour power.}
expect: {output: {any: [Flour power., Bread.]}, steps: {"3a": skipped}}
""",
    "a person who answers the next day": """
answers: {"2": {answer: "yes", after: 26h, by: ada}}
model: {"3a": x}
expect:
  used: {seconds: {least: 93600}}
  events: [{type: effect, by: ada}, run_completed]
""",
    "an empty list has no answer": """
answers: {"2": []}
expect: {status: awaiting_input}
""",
    "nobody answers, and the question expires": """
config: {runs: {expiry: 1d}}
expect: {status: awaiting_input, exit: 4, steps: {"2": waiting}}
then:
  - {advance: 23h, expect: {status: awaiting_input}}
  - {advance: 2h, expect: {status: expired}}
""",
    "an answer through the inbox": """
expect: {status: awaiting_input}
then:
  - answer: {"2": "no"}
    model: {"3b": Flour power.}
    expect: {output: Flour power.}
""",
    "unattended": """
unattended: true
model: {"3a": x}
expect: {steps: {"3a": completed}}
""",
    "a crash anywhere": """
answers: {"2": "yes"}
model: {"3a": x}
crash: everywhere
""",
    "a crash before the reply was recorded": """
answers: {"2": "yes"}
model:
  - {step: "1", reply: '{"best": "Bread."}', crash: after}
  - {step: 3a, reply: Bread!}
expect: {status: interrupted, used: {model_calls: 1}}
then:
  - resume: {}
    expect: {output: Bread!, used: {model_calls: 3}}
""",
    "a fork": """
answers: {"2": "yes"}
model: {"3a": x}
expect: {output: x}
then:
  - fork: {from: "3", set: {choice: "no"}}
    model: {"3b": y}
    expect: {output: y}
""",
    "cancelled": """
expect: {status: awaiting_input}
then: [{cancel: true, expect: {status: cancelled}}]
""",
    "an edit of the document does not change a run under way": """
expect: {status: awaiting_input}
then:
  - edit: {tagline.playbook.md: "# Nothing left"}
  - answer: {"2": "yes"}
    model: {"3a": x}
    expect: {output: x}
""",
    "a warning that is expected": """
answers: {"2": "yes"}
model: {"1": I like Bread., "3a": x}
expect: {named: {best: I like Bread.}, warnings: [{contains: best}]}
""",
    "inputs that do not fit": """
inputs: {tone: loud}
expect: {status: not_started, exit: 2, error: {contains: tone}}
""",
    "the parts of an error, each with its matcher": """
model: {"1": {error: {kind: auth, message: there is no key}}}
expect: {status: failed, error: {message: {contains: key}, step: "1"}}
""",
    "a limit that only directives have": """
limits: {turns: 2}
expect: {status: not_started, error: "limits are for directives, and this is a playbook"}
""",
    "a grant that is none": """
allow: [shel]
expect: {status: not_started, exit: 2, error: {contains: ["allow shel: no tool", did you mean shell]}}
""",
    "a property of JSON in a text": """
answers: {"2": "yes"}
model: {"3a": '{"lines": [{"text": "Bread", "words": 1}]}'}
expect: {output: {json: {lines.0.text: Bread, lines.0.words: {least: 1, most: 1}, other: {absent: true}}}}
""",
}


@pytest.mark.parametrize("name", PASSING)
def test_cases_that_pass(name: str, tmp_path: Path) -> None:
    assert told(only(run(tmp_path, "tagline", case(PASSING[name])))) == []


FAILING = {
    "another output": ("output: Bread!", ['TS110 output: it is "Bread, then."']),
    "a prompt that lacks a word": (
        'prompts: {"1": {contains: a brewery}}',
        ["TS110 the prompt of step 1: "],
    ),
    "a step that did not run": ('steps: {"3b": completed}', ['TS110 step 3b: it is "skipped"']),
    "a matcher that is misspelt": (
        "output: {contain: Bread}",
        ['TS110 output: it is "Bread, then."; did you mean contains?'],
    ),
    "an expression": ('that: [!expr "named.best == inputs.tone"]', ["TS110 that: named.best == inputs.tone is false"]),
    "more than allowed": ("used: {model_calls: {most: 1}}", ["TS110 used.model_calls: 2 is more than 1"]),
    "a warning that never came": ("warnings: [{contains: x}]", ["TS110 warnings: no such warning was given"]),
    "a file that is not there": ("files: {a.txt: x}", ["TS110 files.a.txt: it is missing"]),
    "nothing was refused": (
        "refused: [rye.execute.tool.rye.bash]",
        ["TS110 refused: rye.execute.tool.rye.bash was not"],
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_expectations_that_fail(name: str, tmp_path: Path) -> None:
    expectation, messages = FAILING[name]
    text = f'answers: {{"2": "yes"}}\nmodel: {{"3a": "Bread, then."}}\nexpect: {{{expectation}}}'
    found = told(only(run(tmp_path, "tagline", case(text))))
    assert len(found) == len(messages)
    assert all(one.startswith(message) for one, message in zip(found, messages, strict=True)), found


SCRIPTS = {
    "a reply that no call took": (
        'answers: {"2": "yes"}\nmodel: {"3a": x, "3b": y}\nexpect: {output: x}',
        ["TS101 no call took this reply of step 3b"],
    ),
    "a reply that is missing": (
        'answers: {"2": "yes"}\nexpect: {output: x}',
        ["TS102 the model has no reply for step 3a"],
    ),
    "an answer that no question took": (
        'answers: {"2": ["yes", "no"]}\nmodel: {"3a": x}\nexpect: {output: x}',
        ["TS103 no question took the answer to step 2"],
    ),
    "an answer that is missing": (
        "expect: {named: {best: Bread.}}",
        ["TS110 the run is awaiting input", "TS104 step 2 asks, and no answer is given"],
    ),
    "a warning that is not expected": (
        'answers: {"2": "yes"}\nmodel: {"1": Bread., "3a": x}\nexpect: {output: x}',
        ["TS111 step 1 warned: "],
    ),
    "a second reply that is never used": (
        'answers: {"2": "yes"}\nmodel: {"3a": [x, y]}\nexpect: {output: x}',
        ["TS101 no call took this reply of step 3a"],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_that_do_not_fit(name: str, tmp_path: Path) -> None:
    text, messages = SCRIPTS[name]
    found = told(only(run(tmp_path, "tagline", case(text))))
    assert len(found) == len(messages), found
    assert all(one.startswith(message) for one, message in zip(found, messages, strict=True)), found


BEFORE = {
    "a value that is not there": ("expect: {named: {bset: x}}", "TS014"),
    "a step that is not there": ('expect: {steps: {"9": completed}}', "TS005"),
    "a step that asks nothing": ('answers: {"2": "yes", "3a": "no"}\nexpect: {output: x}', "TS007"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_mistakes_that_need_no_run(name: str, tmp_path: Path) -> None:
    text, code = BEFORE[name]
    assert [one.finding.code.id for one in run(tmp_path, "tagline", case(text)).problems] == [code]


def test_a_failed_step_is_tried_again_by_a_resume(tmp_path: Path) -> None:
    text = """
model: {"1": {error: {kind: overloaded, message: come back later}}}
answers: {"2": "yes"}
expect: {status: failed, exit: 3, error: {contains: later}, steps: {"1": failed}}
then:
  - resume: {}
    model: {"1": '{"best": "Bread."}', "3a": x}
    expect: {output: x}
"""
    assert told(only(run(tmp_path, "tagline", case(text)))) == []


def test_rows_and_products(tmp_path: Path) -> None:
    test = """
    defaults: {answers: {"2": "yes"}, model: {"1": '{"best": "Bread."}', "3a": "{row.line}"}}
    cases:
      - name: rows
        each: rows.csv
        inputs: {product: "{row.product}", tone: dry}
        expect: {output: !expr "value == row.line", prompts: {"1": {contains: "for {row.product} in"}}}
      - name: products
        matrix: {tone: [warm, dry]}
        inputs: {product: a mill}
        model: {"3a": x}
        expect: {prompts: {"1": {contains: "a {row.tone} tone"}}}
    """
    files = {"rows.csv": "product,line\na mill,Flour\na bakery,Bread\n"}
    assert summary(run(tmp_path, "tagline", test, files=files)) == [
        ("rows[row 1]", "passed", []),
        ("rows[row 2]", "passed", []),
        ("products[tone=warm]", "passed", []),
        ("products[tone=dry]", "passed", []),
    ]


@pytest.mark.parametrize("line", ["{text: Bread}", "[Bread]", "3", "true", "null"])
def test_a_column_of_any_value_is_a_reply(line: str, tmp_path: Path) -> None:
    test = f"""
    cases:
      - name: rows
        each: [{{line: {line}}}]
        inputs: {{product: a mill, tone: dry}}
        answers: {{"2": "yes"}}
        model: {{"1": '{{"best": "Bread."}}', "3a": "{{row.line}}"}}
        expect: {{output: !expr "parse(value) == row.line"}}
    """
    assert summary(run(tmp_path, "tagline", test)) == [("rows[row 1]", "passed", [])]


def test_a_column_inside_of_a_json_reply_keeps_its_kind(tmp_path: Path) -> None:
    test = """
    cases:
      - name: rows
        each: [{fine: true, why: 'it is "good"'}]
        inputs: {product: a mill, tone: dry}
        answers: {"2": "yes"}
        model: {"1": {reply: {best: 'So: {row.why}'}}, "3a": {reply: {fine: "{row.fine}", all: ["{row.why}"]}}}
        expect:
          named: {best: 'So: it is "good"'}
          output: '{"fine":true,"all":["it is \\"good\\""]}'
    """
    assert summary(run(tmp_path, "tagline", test)) == [("rows[row 1]", "passed", [])]


def test_a_file_that_is_written_twice_after_a_crash_is_no_difference(tmp_path: Path) -> None:
    test = """
    cases:
      - name: the same file
        inputs: {name: a.txt}
        files: {a.txt: x}
        model: {"2": y}
        crash: everywhere
        expect: {files: {a.txt: y}}
    """
    assert told(only(run(tmp_path, "files", test))) == []


def test_a_schema_that_is_none_fails_the_case(tmp_path: Path) -> None:
    text = 'answers: {"2": "yes"}\nmodel: {"3a": "{}"}\nexpect: {output: {schema: {type: 3}}}'
    found = told(only(run(tmp_path, "tagline", case(text))))
    assert len(found) == 1 and "not a JSON Schema" in found[0]


def test_rows_may_name_steps(tmp_path: Path) -> None:
    test = """
    cases:
      - name: it
        each: [{step: 3a, answer: "yes"}, {step: 3b, answer: "no"}]
        inputs: {product: a mill, tone: dry}
        answers: {"2": "{row.answer}"}
        model: [{step: "1", reply: '{"best": "Bread."}'}, {step: "{row.step}", reply: done}]
        expect: {output: done, steps: {"{row.step}": completed}, prompts: {"{row.step}": {contains: Bread.}}}
    """
    assert [codes for _, _, codes in summary(run(tmp_path, "tagline", test))] == [[], []]


def test_known_failures(tmp_path: Path) -> None:
    test = (
        HEAD.rpartition("  - name")[0]
        + """
  - {name: skipped, skip: later}
  - {name: known, todo: the document is wrong, answers: {"2": "yes"}, model: {"3a": x}, expect: {output: y}}
  - {name: mended, todo: the document is wrong, answers: {"2": "yes"}, model: {"3a": x}, expect: {output: x}}
  - {name: sometimes, flaky: a slow model, answers: {"2": "yes"}, model: {"3a": x}, expect: {output: y}}
  - {name: draft, expect: todo}
"""
    )
    assert summary(run(tmp_path, "tagline", test)) == [
        ("skipped", "skipped", []),
        ("known", "todo", ["TS110"]),
        ("mended", "failed", ["TS114"]),
        ("sometimes", "flaky", ["TS110"]),
        ("draft", "failed", ["TS013"]),
    ]


def test_fans_answer_by_item(tmp_path: Path) -> None:
    test = """
    cases:
      - name: one reader fails twice
        inputs: {text: a page, readers: [a child, a lawyer]}
        model:
          - {step: 1.do, item: 0, reply: {fine: true}}
          - {step: 1.do, item: 1, error: {kind: rate_limit, transient: true}}
          - {step: 1.do, item: 1, error: {kind: overloaded}}
          - {step: 1.do, item: 1, reply: {fine: false}, delay_ms: 20}
        expect:
          stores: {verdicts: [{fine: true}, {fine: false}]}
          used: {model_calls: 4, parallel: 2, seconds: {least: 0.02}}
          that: [!expr "count(stores.verdicts) == count(inputs.readers)"]
          prompts: {1.do: {contains: [as a child, as a lawyer]}}
      - name: a reply that never fits its schema
        inputs: {text: x, readers: [a child]}
        model: [{default: no JSON}]
        expect: {status: failed, error: {contains: JSON}, used: {model_calls: 9}}
    """
    assert summary(run(tmp_path, "board", test)) == [
        ("one reader fails twice", "passed", []),
        ("a reply that never fits its schema", "passed", []),
    ]


def test_files_are_real_and_in_a_folder_of_their_own(tmp_path: Path) -> None:
    test = r"""
    defaults: {inputs: {name: notes.txt}, model: {"2": "a\nb"}}
    cases:
      - name: sorted
        files: {notes.txt: "b\na\n", other.txt: {file: kept.txt}}
        expect:
          files: {notes.txt: "a\nb", other.txt: kept, new.txt: {absent: true}}
          calls: {file__write: [{path: notes.txt, content: "a\nb"}], rye/file-system/read: 1}
      - name: not there
        expect: {status: failed, error: {contains: notes.txt}}
        model: {"2": {reply: x, times: any}}
      - name: scripted
        tools: {file__read: {returns: "z"}, file__write: {raises: {kind: disk, message: the disk is full}}}
        expect: {status: failed, error: {contains: full}, prompts: {"2": {contains: "lines: z"}}}
    """
    found = summary(run(tmp_path, "files", test, files={"kept.txt": "kept", "notes.txt": "untouched"}))
    assert found == [("sorted", "passed", []), ("not there", "passed", []), ("scripted", "passed", [])]
    assert (tmp_path / "notes.txt").read_text() == "untouched"


def test_a_file_to_copy_has_to_be_there(tmp_path: Path) -> None:
    text = 'answers: {"2": "yes"}\nmodel: {"3a": x}\nfiles: {a.txt: {file: gone.txt}}\nexpect: {output: x}'
    found = told(only(run(tmp_path, "tagline", case(text))))
    assert len(found) == 1
    assert found[0].startswith("TS108")
    assert found[0].endswith("gone.txt does not exist")


def test_a_name_that_is_not_there_is_told_with_the_others(tmp_path: Path) -> None:
    test = """
    cases:
      - name: it
        inputs: {name: notes.txt}
        files: {notes.txt: "b"}
        model: {"2": a}
        expect: {files: {quite/other.md: x}}
    """
    assert told(only(run(tmp_path, "files", test))) == [
        "TS110 files.quite/other.md: it is missing; there are notes.txt"
    ]


def test_directives_run_under_their_permissions(tmp_path: Path) -> None:
    test = r"""
    defaults: {files: {notes.txt: "b\na\n"}, inputs: {file: notes.txt}}
    cases:
      - name: sorts
        model:
          - {turn: 1, tool_calls: [{name: rye_file_system_read, input: {path: notes.txt}}]}
          - {turn: 2, tool_calls: [{name: rye_file_system_write, input: {path: notes.txt, content: "a\nb\n"}}]}
          - {turn: 3, tool_calls: [{name: directive_return, input: {lines: 2}}]}
        expect: {outputs: {lines: 2}, files: {notes.txt: "a\nb\n"}, used: {turns: 3, threads: 1}, refused: []}
      - name: may not use a shell
        model:
          - {turn: 1, tool_calls: [{name: rye_bash, input: {command: "rm -r ."}}]}
          - {turn: 2, tool_calls: [{name: directive_return, input: {lines: 0}}]}
        expect: {refused: [rye.execute.tool.rye.bash], calls: {rye/bash: 0}}
      - name: killed between the write and its record
        tools: {rye/file-system/write: {crash: after, returns: {path: notes.txt, bytes: 1, created: false}}}
        model:
          - {turn: 1, tool_calls: [{name: rye_file_system_write, input: {path: notes.txt, content: x}}]}
          - {turn: 2, tool_calls: [{name: directive_return, input: {lines: 1}}]}
        expect: {status: interrupted}
        then: [{resume: {limit: {turns: 8}}, expect: {status: completed, calls: {rye/file-system/write: 2}}}]
      - name: too many turns
        limits: {turns: 1}
        model: [{turn: 1, tool_calls: [{name: rye_file_system_read, input: {path: notes.txt}}]}]
        expect: {status: failed, exit: 5, used: {turns: 1}}
    """
    assert [(name, codes) for name, outcome, codes in summary(run(tmp_path, "tidy", test))] == [
        ("sorts", []),
        ("may not use a shell", []),
        ("killed between the write and its record", []),
        ("too many turns", []),
    ]


def test_snapshots_are_kept_and_compared(tmp_path: Path) -> None:
    text = case('answers: {"2": "yes"}\nmodel: {"3a": x}\nexpect: {prompts: !snapshot }')
    first = run(tmp_path, "tagline", text)
    assert only(first).snapshots["prompts"]
    (tmp_path / "tagline.test.snap.yaml").write_text('it:\n  prompts:\n    "1": [another]\n')
    found = only(run(tmp_path, "tagline", text))
    assert [one.finding.code.id for one in found.problems] == ["TS120"]
    assert found.problems[0].expected and found.problems[0].actual


def test_properties_that_always_hold(tmp_path: Path) -> None:
    text = "always: [!expr \"named.best != ''\"]\n" + case('answers: {"2": "yes"}\nmodel: {"3a": x}')
    assert told(only(run(tmp_path, "tagline", text))) == []
    text = text.replace("!= ''", "== ''")
    assert told(only(run(tmp_path, "tagline", text))) == ["TS115 always: named.best == '' is false"]


def test_a_document_that_is_not_there_is_a_problem_of_the_file(tmp_path: Path) -> None:
    found = run(tmp_path, "tagline", "document: other\n" + case('answers: {"2": "yes"}'))
    assert [one.finding.code.id for one in found.problems] == ["TS003"]


def test_real_tools_answer_where_a_script_says_so(tmp_path: Path) -> None:
    """Inside of `when`, `else` and `sequence`, and with a crash of their own."""
    test = r"""
    defaults: {files: {a.txt: "b\na"}, inputs: {name: a.txt}, model: {"2": "a\nb"}}
    cases:
      - name: else
        tools: {file__read: {when: [{args: {path: b.txt}, raises: no permission}], else: real}}
        expect: {named: {text: "b\na"}, files: {a.txt: "a\nb"}}
      - name: when
        inputs: {name: b.txt}
        tools: {file__read: {when: [{args: {path: b.txt}, raises: no permission}], else: real}}
        model: {}
        expect: {status: failed, error: {contains: no permission}}
      - name: sequence
        tools: {file__read: {sequence: [real]}}
        expect: {files: {a.txt: "a\nb"}}
      - name: crash
        tools: {file__write: {real: true, crash: after}}
        expect: {status: interrupted, files: {a.txt: "a\nb"}}
        then: [{resume: {}, expect: {status: completed, calls: {file__write: 2}}}]
      - name: delay
        tools: {file__read: {real: true, delay_ms: 5000}}
        expect: {used: {seconds: 5}}
    """
    assert [(name, codes) for name, outcome, codes in summary(run(tmp_path, "files", test))] == [
        ("else", []),
        ("when", []),
        ("sequence", []),
        ("crash", []),
        ("delay", []),
    ]


ONE_READER = """
cases:
  - name: it
    inputs: {text: a page, readers: [a child]}
    model: [%s]
    expect: %s
"""


@pytest.mark.parametrize("expect", ["{used: {model_calls: 1}}", "{warnings: []}"])
def test_a_broken_bound_fails_the_case(expect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = ONE_READER % ("{default: {fine: true}}", expect)
    assert only(run(tmp_path, "board", test)).problems == ()
    low = ProvenBounds(model_calls=0)
    monkeypatch.setattr(proven, "_compared", lambda kept, sizes: low)
    assert told(only(run(tmp_path, "board", test))) == [
        "TS142 1 model calls were seen, and at most 0 were proven possible. This is a bug of ours, not of your "
        "document: please report it, with the document and the bound"
    ]


def test_the_usage_that_a_script_names_breaks_no_bound(tmp_path: Path) -> None:
    entry = "{default: {fine: true}, usage: {input_tokens: 1000000, output_tokens: 1000000, cost: 9.0}}"
    assert only(run(tmp_path, "board", ONE_READER % (entry, "{used: {model_calls: 1}}"))).problems == ()


def test_a_stub_of_http_needs_neither_url_nor_headers(tmp_path: Path) -> None:
    """real-work, small things: they are those of the call, and none."""
    (tmp_path / "p.yaml").write_text(
        "pipeline: p\nsteps:\n- tool: {name: http__get, args: {url: 'https://x.org/a'}, output: r}\n"
        "- transform: {value: '[r.status, r.url, r.headers, r.json.n]'}\n"
    )
    text = (
        "document: p.yaml\ncases:\n- name: fetches\n  allow: [http__get=x.org]\n"
        "  tools: {http__get: {returns: {status: 200, json: {n: 1}}}}\n"
        "  expect: {output: [200, 'https://x.org/a', {}, 1]}\n"
    )
    result = run_file(parse(Source.of(text, str(tmp_path / "p.test.yaml"))))
    assert [one.finding.message for case in result.cases for one in case.problems] == []
    assert result.problems == ()
