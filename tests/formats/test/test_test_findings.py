"""Every mistake in a test file is found, at its place, with what to do."""

from __future__ import annotations

import pytest
from tests.formats.test.readings import case_findings, findings, reading_of

KEYS = "the keys are"

IN_CASE = {
    # keys
    "expects: {output: a}": ("TS002", '"expects" is not a key of a case', "expects", "did you mean expect?"),
    "zzz: 1": ("TS002", '"zzz" is not a key of a case', "zzz", KEYS),
    "expect: {promts: {}}": ("TS002", '"promts" is not a key of expect', "promts", "did you mean prompts?"),
    "expect: {used: {calls: 1}}": ("TS002", '"calls" is not a key of used', "calls", ""),
    'model: {"1": {best: Bread}}': ("TS002", '"best" is not a key of a reply', "best", "reply: {…}"),
    "model: [{stap: 1, reply: x}]": ("TS002", '"stap" is not a key of a reply', "stap", "did you mean step?"),
    "tools: {a: {return: 1}}": ("TS002", '"return" is not a key of the tool "a"', "return", "did you mean returns?"),
    "then: [{advanse: 1h}]": ("TS002", '"advanse" is not a key of an entry of then', "advanse", "advance"),
    "live: {passes: 1}": ("TS002", '"passes" is not a key of live', "passes", "did you mean pass?"),
    'answers: {"1": {anser: x}}': ("TS002", '"anser" is not a key of an answer', "anser", "did you mean answer?"),
    "files: {a: {path: b}}": ("TS002", '"path" is not a key of a file', "path", KEYS),
    # kinds
    "inputs: [a]": ("TS001", "inputs must be a mapping, not a list", "[a]", ""),
    "inputs: {a: !expr b}": ("YM010", "!expr cannot stand here: it is for expectations", "!expr b", ""),
    "inputs: {true: b}": ("TS001", "a name must be text, not the boolean true", "true", 'write "true"'),
    "model: hello": ("TS001", "model must be a mapping by step, or a list of replies, not text", "hello", ""),
    'answers: {2: "yes", "2": "no"}': ("TS001", 'the key "2" is here twice', '"2"', ""),
    "model: [5]": ("TS001", "a reply must be text or a mapping, not the number 5", "5", 'write "5" for text'),
    'model: {"1": true}': ("TS001", "a reply must be text or a mapping, not the boolean true", "true", "{reply: true}"),
    'model: {"1":}': ("TS001", "a reply must be text or a mapping, not empty", '"1"', ""),
    "model: [{reply: a, error: b}]": ("TS001", "a reply has both reply and error", "error", "one after the other"),
    "model: [{text: a}]": ("TS001", "text goes with tool_calls", "text", "write reply"),
    "model: [{step: 1}]": ("TS001", "the entry has no reply", "{step: 1}", "one of reply"),
    "model: [{default: a, step: 1}]": (
        "TS001",
        "a default answers every call, so it cannot have step",
        "step",
        "reply",
    ),
    "model: [{reply: a, times: 0}]": (
        "TS001",
        "times must be a whole number of at least 1, or any, not the number 0",
        "0",
        "",
    ),
    "model: [{reply: a, turn: 0}]": ("TS001", "turn must be a whole number of at least 1, not the number 0", "0", ""),
    "model: [{reply: a, item: -1}]": (
        "TS001",
        "item must be a whole number of at least 0",
        "-1",
        "",
    ),
    "model: [{reply: a, delay_ms: -1}]": ("TS001", "delay_ms must be a number from 0 to 1e+12", "-1", ""),
    "model: [{reply: a, contains: 1}]": ("TS001", "contains must be text, not the number 1", "1", 'write "1"'),
    "model: [{crash: during}]": ("TS001", 'crash must be before or after, not "during"', "during", ""),
    "model: [{reply: a, usage: {tokens: 1}}]": ("TS002", '"tokens" is not a key of usage', "tokens", ""),
    "model: [{error: [a]}]": ("TS001", "error must be text, not a list", "[a]", ""),
    "model: [{tool_calls: []}]": ("TS001", "tool_calls is empty", "[]", ""),
    "model: [{tool_calls: [{input: {}}]}]": ("TS001", "a tool call needs a name", "{input: {}}", ""),
    "model: [{tool_calls: [a]}]": ("TS001", "a tool call must be a mapping with name and input, not text", "a", ""),
    "model: [{reply: a, finish_reason: lenght}]": ("TS001", "finish_reason must be one of stop", "lenght", "length?"),
    "tools: {a: fake}": ("TS001", 'the tool "a" is real or a mapping, not text', "fake", "{returns: …}"),
    "tools: {a: [1]}": ("TS001", 'the tool "a" is real or a mapping, not a list', "[1]", "sequence"),
    "tools: {a: {returns: 1, echo: true}}": ("TS001", 'the tool "a" has both returns and echo', "echo", "sequence"),
    "tools: {a: {times: 1}}": ("TS001", 'the tool "a" does nothing', "{times: 1}", "returns"),
    "tools: {a: {returns: 1, else: {echo: true}}}": ("TS001", "else goes with when", "else", ""),
    "tools: {a: {when: [{returns: 1}]}}": ("TS001", "each entry of when needs args", "{returns: 1}", "args"),
    "tools: {a: {echo: false}}": ("TS001", "echo can only be true", "false", "leave echo out"),
    "tools: {a: {sequence: []}}": ("TS001", "sequence is empty", "[]", ""),
    "tools: {a: {returns: 1, class: writ}}": ("TS001", "class must be one of read", "writ", "did you mean write?"),
    'answers: {"2": null}': ("TS001", "an answer must be text, not null", "null", ""),
    'answers: {"2": {by: ada}}': ("TS001", "the answer is missing", "{by: ada}", "write {answer: …}"),
    'answers: {"2": {answer: a, after: soon}}': ("TS001", "after must be a time such as 20ms", "soon", ""),
    "files: {a: 5}": ("TS001", "the text of a file must be text, not the number 5", "5", 'write "5"'),
    "unattended: sometimes": ("TS001", "unattended must be true or false, not text", "sometimes", ""),
    "clock: monday": ("TS001", "clock must be a moment such as 2026-01-31T09:00:00Z", "monday", ""),
    "allow: shell": ("TS001", "allow must be a list, not text", "shell", "[ ]"),
    "tags: [1]": ("TS001", "an entry of tags must be text, not the number 1", "1", 'write "1"'),
    "crash: here": ("TS001", 'crash must be everywhere, not "here"', "here", ""),
    "todo: true": ("TS001", "todo must be the reason as a text, not the boolean true", "true", "write todo: why"),
    "skip:": ("TS001", "skip must be the reason as a text, not empty", "skip", "write skip: why"),
    "expect: completed": ("TS001", "expect must be a mapping, not text", "completed", "expect: todo"),
    "expect: {status: done}": ("TS001", "status must be one of completed", "done", ""),
    "expect: {status: complete}": ("TS001", "status must be one of completed", "complete", "did you mean completed?"),
    "expect: {exit: ok}": ("TS001", "exit must be a whole number of at least 0, not text", "ok", ""),
    'expect: {steps: {"1": done}}': ("TS001", 'the status of step "1" must be one of completed', "done", ""),
    "expect: {stores: 5}": ("TS001", "stores must be a mapping, not the number 5", "5", ""),
    "expect: {refused: a}": ("TS001", "refused must be a list, not text", "a", "[ ]"),
    "expect: {calls: {a: true}}": ("TS001", "the number of calls must be a whole number", "true", ""),
    "then: [x]": ("TS001", "an entry of then must be a mapping with one of answer", "x", ""),
    "then: [{expect: {}}]": ("TS001", "the entry of then does nothing", "{expect: {}}", "add one of answer"),
    "then: [{resume: {}, cancel: true}]": ("TS001", "the entry of then has both resume and cancel", "cancel", "after"),
    "then: [{cancel: false}]": ("TS001", "cancel can only be true", "false", ""),
    "then: [{advance: 10}]": ("TS001", 'advance must be a time such as 20ms, 30m, 48h or 7d, not "10"', "10", ""),
    "then: [{fork: {}}]": ("TS001", "fork needs the step that it continues from", "{}", "from"),
    "then: [{resume: {limits: {}}}]": ("TS002", '"limits" is not a key of resume', "limits", "did you mean limit?"),
    "live: {pass: 90}": ("TS001", "pass must be a number from 0 to 1, not the number 90", "90", ""),
    "live: {repeat: 0}": ("TS001", "repeat must be a whole number of at least 1", "0", ""),
    "live: {judge: {}}": ("TS001", "judge needs a rubric", "{}", ""),
    # matchers
    "expect: {output: {contains: a, topic: b}}": (
        "TS010",
        '"topic" stands beside the matcher contains',
        "topic",
        "json",
    ),
    # real-work, small things: an argument of http__send is named like a matcher.
    "expect: {calls: {http__send: [{json: {to: a}, method: POST}]}}": (
        "TS010",
        '"method" stands beside the matcher json',
        "method",
        'for a key that is named json: json: {"json.KEY": …}',
    ),
    "expect: {output: {contains: a, match: b}}": (
        "TS010",
        '"match" stands beside the matcher contains',
        "match",
        "did you mean matches?",
    ),
    "expect: {prompts: {contains: a}}": ("TS010", "contains needs the step whose prompt is meant", "contains", "step"),
    "expect: {output: {contains: []}}": ("TS010", "contains is empty, so it says nothing", "[]", ""),
    'expect: {output: {matches: "(?=a)"}}': ("TS010", "the pattern is not valid", '"(?=a)"', "look-around"),
    "expect: {output: {most: many}}": ("TS010", "most must be a number, not text", "many", ""),
    "expect: {output: {any: []}}": ("TS010", "any is empty, so it says nothing", "[]", ""),
    'expect: {output: {schema: {$ref: "http://a"}}}': ("TS010", "the schema cannot be used", "schema", ""),
    "expect: {output: !snapshot old}": ("TS010", "nothing stands after !snapshot", "old", "kept beside the test"),
    "expect: {output: {json: a}}": ("TS001", "json must be a mapping, not text", "a", "{json:"),
    "expect: {output: {absent: 1}}": ("TS001", "absent must be true or false, not the number 1", "1", ""),
    "expect: {that: [5]}": ("TS010", "an entry of that must be an expression, not the number 5", "5", "!expr"),
    'expect: {output: !expr "value == "}': ("EX001", "", "", ""),
    'expect: {output: !expr "count(reviews) == 2"}': (
        "TS010",
        '"reviews" is not a name that an expectation can read',
        "reviews",
        "there are value",
    ),
    'expect: {output: !expr "valu == 2"}': ("TS010", '"valu" is not a name', "valu", "did you mean value?"),
    # rows
    "each: rows.txt": ("TS011", '"rows.txt" is not a .csv or .jsonl file', "rows.txt", ""),
    "each: []": ("TS011", "each has no rows, so the case never runs", "[]", ""),
    "each: [a]": ("TS011", "a row is a mapping of columns to values, not text", "a", "{column: value}"),
    "matrix: {tone: dry}": ("TS011", "tone of matrix must be a list of values, not text", "dry", ""),
    "matrix: {tone: []}": ("TS011", "tone of matrix must be a list of values, not an empty list", "[]", ""),
    # paths
    "files: {../a: b}": ("TS012", 'the path "../a" leaves the folder', "../a", "below the folder"),
    "files: {/a: b}": ("TS012", 'the path "/a" leaves the folder', "/a", ""),
    "files: {a: {file: b/../../c}}": ("TS012", 'the path "b/../../c" leaves the folder', "b/../../c", ""),
    'files: {"C:\\\\a": b}': ("TS012", 'the path "C:\\a" leaves the folder', '"C:\\\\a"', ""),
    "files: {~/a: b}": ("TS012", 'the path "~/a" leaves the folder', "~/a", ""),
    'files: {"a\\0": b}': ("TS001", "the path", '"a\\0"', ""),
    "each: ../rows.csv": ("TS012", 'the path "../rows.csv" leaves the folder', "../rows.csv", ""),
    "cassette: /etc/x.yaml": ("TS012", 'the path "/etc/x.yaml" leaves the folder', "/etc/x.yaml", ""),
    "live: {judge: {rubric: ../j.yaml}}": ("TS012", 'the path "../j.yaml" leaves the folder', "../j.yaml", ""),
    "then: [{edit: {../a: b}}]": ("TS012", 'the path "../a" leaves the folder', "../a", ""),
    "expect: {files: {../a: b}}": ("TS012", 'the path "../a" leaves the folder', "../a", ""),
}

IN_FILE = {
    "": ("TS001", "the file is empty", "", "the key cases"),
    "[]": ("TS001", "a test file is a mapping, not a list", "[]", "the key cases"),
    "about: a": ("TS001", "the file has no cases", "about", "the key cases"),
    "cases: []": ("TS001", "cases must be a list of at least one case, not a list", "[]", ""),
    "cases: {a: b}": ("TS001", "cases must be a list of at least one case, not a mapping", "{a: b}", ""),
    "cases: [a]": ("TS001", "a case must be a mapping with a name, not text", "a", ""),
    "cases: [{inputs: {}}]": ("TS001", "the case has no name", "inputs", "write name:"),
    "cases: [{name: 5}]": ("TS001", "the name of a case must be text, not the number 5", "5", 'write "5"'),
    'cases: [{name: ""}]': ("TS001", "the name of a case is empty", '""', ""),
    'cases: [{name: "\\e[31m"}]': ("TS001", "the name of a case is one line", '"\\e[31m"', ""),
    'cases: [{name: "a\\nb"}]': ("TS001", "the name of a case is one line", '"a\\nb"', ""),
    "cases: [{name: a}, {name: a}]": ("TS004", 'the case "a" is here twice', "a", "the first is on line 1"),
    "cases: [{name: a}]\nalways: [5]": ("TS001", "an entry of always must be an expression", "5", ""),
    "cases: [{name: a}]\ncoverage: 100": ("TS001", "coverage must be a mapping", "100", "{all: 100}"),
    "cases: [{name: a}]\ncoverage: {lines: 100}": ("TS002", '"lines" is not a key of coverage', "lines", ""),
    "cases: [{name: a}]\ncoverage: {arms: 101}": ("TS001", "arms must be a number from 0 to 100", "101", ""),
    "cases: [{name: a}]\ndefaults: {name: a}": ("TS002", '"name" is not a key of defaults', "name", ""),
    "cases: [{name: a}]\ndocument: /a.yaml": ("TS012", 'the path "/a.yaml" leaves the folder', "/a.yaml", ""),
    "cases: [{name: a}]\n---\ncases: []": ("TS001", "a test file is one YAML document", "cases: []", ""),
    "cases: [{name: a, expect: {output: !snapshot}}]": ("YM001", "did not find expected", "", "put a space"),
    "cases: [{name: a, expect: {output: !file a}}]": ("YM009", "the tag !file is not known", "!file", "!snapshot"),
    "cases: [{name: a, expect: {output: !snapshot {a: b}}}]": ("YM009", "!snapshot cannot mark", "!snapshot", "value"),
}


def is_like(found: tuple[str, str, str, str], wanted: tuple[str, str, str, str]) -> bool:
    code, message, marked, help = wanted
    return found[0] == code and message in found[1] and marked in (found[2], "") and help in found[3]


@pytest.mark.parametrize("lines", IN_CASE)
def test_mistakes_in_a_case(lines: str) -> None:
    found = case_findings(lines)
    assert len(found) == 1 and is_like(found[0], IN_CASE[lines]), found


@pytest.mark.parametrize("text", IN_FILE)
def test_mistakes_in_a_file(text: str) -> None:
    found = findings(text)
    assert len(found) == 1 and is_like(found[0], IN_FILE[text]), found


def test_all_mistakes_are_reported_in_order() -> None:
    found = findings("cases:\n  - nam: a\n    model: [1]\n  - name: b\n    expect: {exit: no, outpt: 1}\n")
    assert [(code, marked) for code, _, marked, _ in found] == [
        ("TS002", "nam"),
        ("TS001", "1"),
        ("TS001", "no"),
        ("TS002", "outpt"),
    ]


def test_an_error_inside_of_an_expression_is_marked_there() -> None:
    found = case_findings('expect: {that: [!expr "count(value) = 2"]}')
    assert [(code, marked) for code, _, marked, _ in found] == [("EX001", "=")]


def test_a_known_key_with_one_wrong_letter_has_a_fix() -> None:
    (found,) = reading_of("cases: [{name: a, expct: {}}]").diagnostics
    assert found.fix
    assert [edit.new for edit in found.fix.edits] == ["expect"]
