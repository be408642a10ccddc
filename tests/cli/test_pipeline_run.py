"""`quire run` on pipelines, in this process: inputs, names, output, and how a run goes on after it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.given import given

from quire.cli import main

ECHO = "pipeline: echo\nsteps:\n  - transform: {value: 'ctx.n'}\n"
READ = """pipeline: read_all
steps:
  - for_each:
      max_parallel: 1
      over: ctx.files
      on_error: POLICY
      do: {tool: {name: file__read, args: {path: !expr item}}}
      collect: {transform: {value: pipe}}
      output: texts
  - transform: {value: "join(texts, '+')"}
"""
ASKING = """pipeline: asking
steps:
  - for_each:
      items: [desk, chair]
      on_error: abort
      do: {tool: {name: ask, args: {prompt: !expr "'Take the ' + item + '?'", type: confirm}}}
      collect: {transform: {value: pipe}}
      output: taken
  - parallel:
      branches:
        who: {tool: {name: ask, args: {prompt: Who?}}}
        day: {tool: {name: ask, args: {prompt: Which day?, type: select, options: [Monday, Friday]}}}
      collect: {transform: {value: pipe}}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml").replace("_txt", ".txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def last_line(out: str) -> dict[str, object]:
    found = json.loads(out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("5", 5),
        ('"5"', "5"),
        ("five", "five"),
        ("true", True),
        ("null", None),
        ('{"a": [1, 2.5]}', {"a": [1, 2.5]}),
        ("[1, 2", "[1, 2"),
        ("NaN", "NaN"),
        ("12345678901234567890123", 12345678901234567890123),
        ("", ""),
        ("@value.txt", [1, 2]),
        ("@word.txt", "plain words\n"),
        ("@@5", "@5"),
    ],
)
def test_an_input_is_json_where_it_can_be(workspace: Path, said: Said, given: str, value: object) -> None:
    write(workspace, echo_yaml=ECHO, value_txt="[1, 2]\n", word_txt="plain words\n")
    assert main(["run", "echo.yaml", "-i", f"n={given}", "--json"]) == 0
    result = last_line(said()[0])
    assert (result["output"], result["stores"]) == (value, {"n": value})


@pytest.mark.parametrize(
    ("given", "out"),
    [
        ("word", "word\n"),
        ('{"a": [1]}', '{\n  "a": [\n    1\n  ]\n}\n'),
        ("null", "null\n"),
        ("[]", "[]\n"),
        ('""', ""),
        ('"ü\\u0007"', "ü\x07\n"),
    ],
)
def test_text_is_printed_as_it_is_and_other_values_as_json(workspace: Path, said: Said, given: str, out: str) -> None:
    write(workspace, echo_yaml=ECHO)
    assert main(["run", "echo.yaml", "-i", f"n={given}", "-q"]) == 0
    assert said() == (out, "")
    assert main(["runs", "last", "--output"]) == 0
    assert said()[0] == (out or "\n")


@pytest.mark.parametrize(
    ("given", "to", "file", "text"),
    [
        ("word", "res", "res.txt", "word\n"),
        ('{"a": 1}', "res", "res.json", '{\n  "a": 1\n}\n'),
        ("word", "res.md", "res.md", "word\n"),
        ("[1]", "./", "echo.json", "[\n  1\n]\n"),
        ('"```\\nx\\n```"', "res", "res.txt", "```\nx\n```\n"),
    ],
)
def test_the_file_of_the_output_has_the_right_name(
    workspace: Path, said: Said, given: str, to: str, file: str, text: str
) -> None:
    write(workspace, echo_yaml=ECHO)
    assert main(["run", "echo.yaml", "-i", f"n={given}", "--out", to, "-q"]) == 0
    assert said() == ("", "")
    assert (workspace / file).read_text() == text


def test_json_in_a_file_of_another_kind_is_warned_about(workspace: Path, said: Said) -> None:
    write(workspace, echo_yaml=ECHO)
    assert main(["run", "echo.yaml", "-i", "n=[1]", "--out", "res.txt", "-q"]) == 0
    assert "usually ends in .json" in said()[1]


def test_missing_inputs_are_named_and_fail_their_step(workspace: Path, said: Said) -> None:
    write(workspace, two_yaml="pipeline: two\nsteps:\n  - transform: {value: '[ctx.a, ctx.b, get(ctx, \"c\")]'}\n")
    assert main(["run", "two.yaml", "-i", "a=1"]) == 3
    out, err = said()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "warning: nothing is given for b: a step that reads it fails (-i b=…)"
    assert lines[2].startswith("failed at step 1: ctx.b is absent")


def test_no_model_is_looked_for_where_none_is_asked(
    workspace: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("nobody needs a model here")

    monkeypatch.setattr("quire.runs.adapters.choose_model", refuse)
    write(workspace, echo_yaml=ECHO)
    assert main(["run", "echo.yaml", "-i", "n=1"]) == 0
    out, err = said()
    assert out == "1\n" and "model" not in err
    assert main(["runs", "last"]) == 0
    assert "\nmodel" not in said()[0]


def test_a_callee_that_asks_a_model_needs_one(workspace: Path, said: Said) -> None:
    write(
        workspace,
        top_yaml="pipeline: top\nsteps:\n  - call: {pipeline: deep}\n",
        pipelines__deep_yaml="pipeline: deep\nsteps:\n  - agent: {prompt: Say hi.}\n",
    )
    (workspace / "replies.json").write_text('["hi"]')
    assert main(["run", "top.yaml", "--script", "replies.json"]) == 0
    out, err = said()
    assert out == "hi\n" and err.startswith("model: script:")


def test_a_registered_pipeline_runs_by_its_name(workspace: Path, said: Said) -> None:
    write(
        workspace,
        pipelines__one_yaml=ECHO,
        pipelines__many_yaml=(
            "pipeline: first\nsteps:\n  - call: {pipeline: second, pass: [n]}\n---\n"
            "pipeline: second\nsteps:\n  - transform: {value: ctx.n + 1}\n"
        ),
    )
    assert main(["run", "echo", "-i", "n=1", "-q"]) == 0
    assert said() == ("1\n", "")
    assert main(["run", "many.first", "-i", "n=1", "-q"]) == 0
    assert said() == ("2\n", "")
    assert main(["runs", "last"]) == 0
    assert said()[0].startswith("many.first\n")
    given({"echo": "# A file wins\n\n## STEP 1: A\n\nGo.\n", "replies.json": '["gone"]'}, workspace)
    assert main(["run", "echo", "-q", "--script", "replies.json"]) == 0
    assert said()[0] == "gone\n"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ecko", "unknown file, pipeline, playbook or directive ecko; did you mean echo?"),
        ("nothing", "unknown file, pipeline, playbook or directive nothing; known here are echo"),
        ("echo.yaml", "echo.yaml does not exist"),
        ("some/other", "unknown file, pipeline, playbook or directive some/other; known here are echo"),
    ],
)
def test_a_name_that_means_nothing(workspace: Path, said: Said, name: str, problem: str) -> None:
    write(workspace, pipelines__one_yaml=ECHO, pipelines__bad_yaml="pipeline: bad\n")
    assert main(["run", name]) == 2
    lines = said()[1].splitlines()
    assert lines[0] == f"quire: {problem}"
    assert any("bad.yaml:1: " in line for line in lines[1:]) is not ("exist" in problem)


def test_a_failed_item_ends_the_run_and_resume_goes_on_from_there(workspace: Path, said: Said) -> None:
    write(workspace, read_yaml=READ.replace("POLICY", "abort"), a_txt="A", b_txt="B")
    files = '["a.txt", "gone.txt", "b.txt"]'
    assert main(["run", "read.yaml", "-i", f"files={files}", "--json"]) == 3
    out, err = said()
    result = last_line(out)
    assert result["error"] == {
        "kind": "file",
        "message": "gone.txt: no such file or directory",
        "step": "1",
        "way": "1",
        "path": "1/for_each[1]/tool",
    }
    assert result["stores"] == {"files": ["a.txt", "gone.txt", "b.txt"]}
    assert "failed at step 1 (1/for_each[1]/tool): gone.txt: no such file" in err
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert "failed at 1/for_each[1]/tool\n" in page
    assert "1/for_each[0]/tool  tool  ok" in page
    write(workspace, gone_txt="G", a_txt="changed")
    assert main(["resume", "last", "--json"]) == 0
    lines = [json.loads(line) for line in said()[0].splitlines()]
    assert [line["path"] for line in lines if line["type"] == "effect"] == ["1/for_each[1]/tool", "1/for_each[2]/tool"]
    assert lines[-1]["output"] == "A+G+B"


def test_dropped_items_are_told_one_by_one(workspace: Path, said: Said) -> None:
    write(workspace, read_yaml=READ.replace("POLICY", "continue"), a_txt="A")
    assert main(["run", "read.yaml", "-i", 'files=["gone.txt", "a.txt"]']) == 0
    out, err = said()
    assert out == "A\n"
    lines = [line.rpartition(" 0.")[0] or line for line in err.splitlines()]
    assert "  1.do 0 failed: gone.txt: no such file or directory" in lines
    assert err.splitlines()[2].endswith("(1 of 2, 1 failed)")
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert "1 of 2, 1 failed" in page
    assert "items that failed\n  step 1, 0: gone.txt: no such file or directory\n" in page
    assert 'stores\n  texts  ["A"]\n' in page
    data = json_of(said, "runs", "last")
    assert data["steps"][0]["items"] == {"total": 2, "done": 1, "failed": 1}
    assert data["stores"] == {"files": ["gone.txt", "a.txt"], "texts": ["A"]}
    assert (data["output"], data["format"]) == ("A", "pipeline")


def test_the_journal_does_not_keep_the_items(workspace: Path, said: Said) -> None:
    write(workspace, read_yaml=READ.replace("POLICY", "continue"), a_txt="A")
    assert main(["run", "read.yaml", "-i", 'files=["a.txt", "a.txt"]', "--json"]) == 0
    told = [json.loads(line) for line in said()[0].splitlines()]
    items = [line for line in told if line["type"] == "fan_item"]
    assert [(line["index"], line["state"], "seq" in line) for line in items] == [(0, "done", False), (1, "done", False)]
    assert main(["runs", "last", "--follow", "--json"]) == 0
    kept = [json.loads(line)["type"] for line in said()[0].splitlines()]
    assert kept.count("fan_started") == 1 and "fan_item" not in kept


def test_questions_of_items_are_answered_by_path_and_those_of_branches_by_step(workspace: Path, said: Said) -> None:
    write(workspace, asking_yaml=ASKING)
    assert main(["run", "asking.yaml"]) == 4
    err = said()[1]
    assert "step 1.do (1/for_each[0]/ask) asks: Take the desk?" in err
    assert "STEP|PATH VALUE" in err
    assert main(["inbox"]) == 0
    assert "step 1.do at 1/for_each[1]/ask (confirm): Take the chair?" in said()[0]
    assert main(["answer", "last", "yes"]) == 2
    assert "asks at several steps (1/for_each[0]/ask, 1/for_each[1]/ask): say which" in said()[1]
    assert main(["answer", "last", "1.do", "yes"]) == 2
    assert "say which" in said()[1]
    assert main(["answer", "last", "1/for_each[1]/ask", "perhaps"]) == 2
    said()
    assert main(["answer", "last", "1/for_each[1]/ask", "no", "-q"]) == 4
    assert said()[1].splitlines()[0] == "step 1.do (ask) asks: Take the desk?"
    assert main(["answer", "last", "yes", "-q"]) == 4
    err = said()[1]
    assert "step 2.who (ask) asks: Who?" in err and "STEP VALUE" in err
    assert main(["answer", "last", "2.day", "2", "-q"]) == 4
    said()
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert 'taken  ["yes","no"]' in page and "2/parallel[day]/ask" in page
    assert main(["answer", "last", "2.who", "Kim", "-q"]) == 0
    assert json.loads(said()[0]) == {"who": "Kim", "day": "Friday"}


def test_answers_are_given_beforehand_by_step_or_path(workspace: Path, said: Said) -> None:
    write(workspace, asking_yaml=ASKING)
    # By its step an answer is for every item, by its path for one of them.
    given = {"1/for_each[1]/ask": "no", "1.do": "yes", "2.who": "Kim", "2.day": "Monday"}
    answers = [word for name, value in given.items() for word in ("--answer", f"{name}={value}")]
    assert main(["run", "asking.yaml", "--json", *answers]) == 0
    result = last_line(said()[0])
    assert result["stores"] == {"taken": ["yes", "no"]}
    assert main(["run", "asking.yaml", "-q", *answers[2:]]) == 0
    said()
    assert main(["run", "asking.yaml", "--unattended", "-q"]) == 3
    said()
    assert main(["run", "asking.yaml", "--unattended", "-q", "--answer", "1.do=yes"]) == 0
    assert json.loads(said()[0]) == {"who": "", "day": "Monday"}


def test_a_cancelled_run_goes_on(workspace: Path, said: Said) -> None:
    write(workspace, asking_yaml=ASKING)
    assert main(["run", "asking.yaml", "-q"]) == 4
    assert main(["cancel", "last"]) == 0
    said()
    assert json_of(said, "inbox") == []
    assert main(["resume", "last", "-q"]) == 4
    assert "Take the desk?" in said()[1]


def test_a_breakpoint_shows_the_stores(workspace: Path, said: Said) -> None:
    write(workspace, read_yaml=READ.replace("POLICY", "abort"), a_txt="A")
    assert main(["run", "read.yaml", "-i", 'files=["a.txt"]', "--break", "1", "-q"]) == 4
    assert '  texts = ["A"]' in said()[1]
    assert main(["resume", "last", "-q"]) == 0
    assert said()[0] == "A\n"


def test_the_state_of_playbooks_is_not_that_of_pipelines(workspace: Path, said: Said) -> None:
    write(workspace, echo_yaml=ECHO)
    assert main(["run", "echo.yaml", "-i", "n=1", "-q"]) == 0
    said()
    assert main(["runs", "last", "--state"]) == 2
    assert "--state is for playbooks" in said()[1]


def test_a_long_run_shows_its_failures_among_its_first_effects(workspace: Path, said: Said) -> None:
    write(workspace, read_yaml=READ.replace("POLICY", "continue"), a_txt="A")
    files = json.dumps(["a.txt"] * 40 + ["gone.txt"])
    assert main(["run", "read.yaml", "-i", f"files={files}", "-q"]) == 0
    said()
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert "1/for_each[40]/tool" in page and "11 more: quire runs" in page


def test_an_input_that_no_step_reads_is_named(workspace: Path, said: Said) -> None:
    write(workspace, readers_yaml="pipeline: p\nsteps:\n  - transform: {value: \"get(ctx, 'readers', 0)\"}\n")
    assert main(["run", "readers.yaml", "-i", "reader=1", "-i", "zz=2"]) == 0
    _, err = said()
    assert err.splitlines()[:2] == [
        "warning: no step reads reader; did you mean readers?",
        "warning: no step reads zz",
    ]


def test_what_was_refused_is_not_to_be_resumed(workspace: Path, said: Said) -> None:
    write(workspace, ls_yaml="pipeline: ls\nsteps:\n  - shell: {command: ls}\n")
    assert main(["run", "ls.yaml"]) == 6
    _, err = said()
    assert "--allow shell" in err and "quire resume" not in err
    assert main(["runs", "last"]) == 2, "nothing was started"


def test_warnings_of_a_pipeline_are_announced(workspace: Path, said: Said) -> None:
    write(
        workspace, p_yaml="pipeline: p\nsteps:\n- transform: {value: '1'}\n- tool: {name: file__list, args: {pth: x}}\n"
    )
    assert main(["run", "p.yaml"]) == 2
    assert said()[1].startswith("1 warning: quire check p.yaml\n")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [("9=hi", "unknown step 9"), ("1=hi", "answer yes or no"), ("2=hi", "step 2 asks nothing")],
)
def test_an_answer_that_cannot_be_meant_is_refused(workspace: Path, said: Said, answer: str, problem: str) -> None:
    ask = "- tool: {name: ask, args: {type: confirm, prompt: Go?}}\n"
    write(workspace, p_yaml=f"pipeline: p\nsteps:\n{ask}- transform: {{value: '1'}}\n")
    assert main(["run", "p.yaml", "-q", "--answer", answer]) == 2
    assert problem in said()[1]
    assert main(["run", "p.yaml", "-q"]) == 4
    said()
    assert main(["resume", "last", "-q", "--answer", answer]) == 2
    assert main(["resume", "last", "-q", "--answer", "1=yes"]) == 0


def test_the_spawn_cap_is_a_limit(workspace: Path, said: Said) -> None:
    given({"quire.toml": "[safety.spawn]\nmax_pipeline_spawns = 1\n", "r.json": '[{"default": "x"}]'}, workspace)
    fan = "{over: 'ctx.xs', on_error: abort, do: {agent: {prompt: A.}}, collect: {transform: {value: pipe}}}"
    write(workspace, p_yaml=f"pipeline: p\nsteps:\n- for_each: {fan}\n")
    assert main(["run", "p.yaml", "-q", "-i", "xs=[1,2]", "--script", "r.json"]) == 5
    assert "raise max_pipeline_spawns" in said()[1]


def test_a_resume_can_change_the_model(workspace: Path, said: Said) -> None:
    given({"a.json": '[{"error": "gone"}]', "b.json": '[{"default": "from b"}]'}, workspace)
    write(workspace, p_yaml="pipeline: p\nsteps:\n- agent: {prompt: A.}\n")
    assert main(["run", "p.yaml", "-q", "--model", "script:a.json"]) == 3
    said()
    assert main(["resume", "last", "-q", "--model", "script:b.json"]) == 0
    assert said()[0] == "from b\n"


@pytest.mark.parametrize("kind", ["auth", "unknown_model"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("p.yaml", "pipeline: p\nsteps:\n- agent: {prompt: A.}\n"), ("p.playbook.md", "# P\n\n## STEP 1: A\n\nGo.\n")],
)
def test_the_hint_after_a_refused_key_is_one_that_changes_the_model(
    workspace: Path, said: Said, name: str, text: str, kind: str
) -> None:
    """§4: after HTTP 401 and 404 the same model would answer the same."""
    given({name: text, "a.json": [{"error": {"kind": kind}}]}, workspace)
    assert main(["run", name, "--script", "a.json"]) == 3
    _, err = said()
    assert "--model OTHER" in err.splitlines()[-1]


def test_the_calls_of_an_agent_are_seen(workspace: Path, said: Said) -> None:
    (workspace / "quire.toml").write_text('[agents.default]\ntools = ["file__read"]\n')
    write(workspace, p_yaml="pipeline: p\nsteps:\n  - agent: {prompt: Look.}\n", a_txt="hello")
    calls = [{"name": "file__read", "input": {"path": name}} for name in ("a.txt", "none.txt")]
    (workspace / "replies.json").write_text(json.dumps([{"tool_calls": calls}, "done"]))
    assert main(["trust", "workspace", "--yes"]) == 0
    said()
    assert main(["run", "p.yaml", "--script", "replies.json"]) == 0
    lines = said()[1].splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  turn 1",
        '  > file__read path="a.txt"',
        '  < file__read "hello"',
        '  > file__read path="none.txt"',
        "  ! file__read failed: none.txt: no such file or directory",
    ]
    assert main(["runs", "last"]) == 0
    assert 'file__read path="a.txt" → "hello"' in said()[0]


def test_the_items_of_a_fold_are_counted_and_not_those_inside_of_them(workspace: Path, said: Said) -> None:
    each = (
        "for_each: {items: [1, 2], on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: '1'}}}"
    )
    write(
        workspace, p_yaml=f"pipeline: p\nsteps:\n  - fold: {{items: [1, 2, 3], init: '0', output: n, do: {{{each}}}}}\n"
    )
    assert main(["run", "p.yaml"]) == 0
    assert "(3 items)" in said()[1]
