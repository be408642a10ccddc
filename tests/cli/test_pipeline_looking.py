"""`quire check`, `parse` and `show` on pipelines: nothing is run, and the workspace is looked at."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import json_of

from quire.cli import main
from quire.library.registered import load_registry
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

Capture = pytest.CaptureFixture[str]

PAGE = """schema: Review
fields:
  passed: {type: bool}
  grade: {type: enum, values: [good, bad]}
  lines: {type: list, of: {type: number}, required: false}
  by: {type: object, fields: {name: {type: string}}}
  next: {type: ref, schema: Other}
---
schema: Other
fields:
  x: {type: string}
---
pipeline: board
description: Reviews things.
steps:
  - for_each:
      over: ctx.readers
      max_items: 1
      on_error: retry(2)
      do:
        agent:
          identity: reviewer
          capabilities: {tools: [file__read]}
          prompt: "Read {ctx.doc} as {item.name}. {{ctx.doc}} {not_a_store}"
          schema: Review
      collect: {transform: {value: pipe}}
      output: reviews
  - match:
      on: "all(reviews, r -> r.passed)"
      cases:
        "True": {pipeline: publish, pass: [reviews]}
      default: {pipeline: many.reject, pass: {why: "'bad'"}}
      output: verdict
  - fold: {over: ctx.readers, init: "0", do: {transform: {value: acc + 1}}, output: total, max_items: 9}
  - parallel:
      branches:
        write: {tool: {name: file__write, args: {path: out.txt, content: !expr verdict}}}
        list: {shell: {command: [ls, "-l"]}}
      collect: {transform: {value: "get(ctx, 'extra', pipe)"}}
  - call: {pipeline: publish, pass: [reviews]}
  - agent: {prompt: "Sum up {verdict} and {pipe}."}
"""
PUBLISH = "pipeline: publish\nsteps:\n  - transform: {value: count(ctx.reviews)}\n"
MANY = """pipeline: reject
steps:
  - call: {pipeline: helper, pass: [why]}
---
pipeline: helper
steps:
  - transform: {value: ctx.why}
"""


@pytest.fixture
def board(workspace: Path) -> Path:
    (workspace / "pipelines").mkdir()
    (workspace / "pipelines" / "publish.yaml").write_text(PUBLISH)
    (workspace / "pipelines" / "many.yaml").write_text(MANY)
    (workspace / "quire.toml").write_text(
        '[agents.reviewer]\nsystem = "You review."\ntools = ["file__read", "shell"]\n'
    )
    (workspace / "board.yaml").write_text(PAGE)
    return workspace


def codes(capsys: Capture) -> list[str]:
    return [found["code"] for found in json.loads(capsys.readouterr().out)]


def test_targets_are_found_in_the_workspace(board: Path, capsys: Capture) -> None:
    assert main(["check", "--strict", "board.yaml", "pipelines"]) == 0
    assert capsys.readouterr().err == "nothing found in 3 files\n"
    (board / "pipelines" / "publish.yaml").unlink()
    assert main(["check", "--json", "board.yaml"]) == 0
    assert codes(capsys) == ["PL101", "PL101"]


def test_the_workspace_is_that_of_the_file(
    board: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--strict", str(board / "board.yaml")]) == 0


def test_tools_are_known_unless_somebody_would_have_to_be_asked(board: Path, capsys: Capture) -> None:
    (board / "t.yaml").write_text("pipeline: t\nsteps:\n  - tool: {name: file__raed}\n")
    assert main(["check", "t.yaml"]) == 0
    assert "did you mean" in capsys.readouterr().out
    (board / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "false"}}}')
    assert main(["check", "--json", "t.yaml"]) == 0
    assert codes(capsys) == []


def test_only_a_registered_file_may_hold_several(board: Path, capsys: Capture) -> None:
    (board / "many.yaml").write_text(MANY)
    assert main(["check", "--json", "many.yaml"]) == 1
    assert len(codes(capsys)) == 1
    (board / "quire.toml").write_text('[pipelines.entries.other]\npath = "many.yaml"\n')
    assert main(["check", "--json", "many.yaml"]) == 0


def test_a_circle_through_other_files_is_an_error(board: Path, capsys: Capture) -> None:
    (board / "pipelines" / "publish.yaml").write_text("pipeline: publish\nsteps:\n  - call: {pipeline: back}\n")
    (board / "pipelines" / "back.yaml").write_text("pipeline: back\nsteps:\n  - call: {pipeline: publish}\n")
    assert main(["check", "pipelines/back.yaml"]) == 1
    assert "can reach itself" in capsys.readouterr().out


def test_a_circle_through_a_file_that_is_not_registered_is_an_error(board: Path, capsys: Capture) -> None:
    (board / "pipelines" / "back.yaml").write_text("pipeline: back\nsteps:\n  - call: {pipeline: mine}\n")
    (board / "mine.yaml").write_text("pipeline: mine\nsteps:\n  - call: {pipeline: back}\n")
    assert main(["check", "mine.yaml"]) == 1
    assert "mine can reach itself: mine → back → mine" in capsys.readouterr().out


def test_two_files_of_one_name_are_an_error_in_both(board: Path, capsys: Capture) -> None:
    (board / "pipelines" / "again.yaml").write_text(PUBLISH)
    assert main(["check", "--json", "pipelines"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out) if one["code"] == "PL021"]
    assert sorted(Path(one["file"]).name for one in found) == ["again.yaml", "publish.yaml"]
    assert "publish.yaml too: neither is loaded" in found[0]["message"]


def test_yml_files_and_folders_are_registered_and_hidden_files_are_not(board: Path) -> None:
    (board / "pipelines" / "short.yml").write_text("pipeline: short\nsteps:\n  - transform: {value: '1'}\n")
    (board / "pipelines" / "team").mkdir()
    (board / "pipelines" / "team" / "many.yaml").write_text(MANY)
    (board / "pipelines" / ".draft.yaml").write_text("pipeline: draft\nsteps:\n  - transform: {value: '1'}\n")
    names = load_registry(load_settings(find_workspace(board))).pipelines
    assert "short" in names and "draft" not in names
    assert {one.key for one in names.values() if one.name.startswith("team/")} == {"team/many"}
    assert main(["check", "pipelines"]) == 0


def test_check_finds_the_pipelines_that_run_finds_where_nothing_marks_a_workspace(
    board: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = board.parent / "bare"
    (bare / "pipelines").mkdir(parents=True)
    (bare / "pipelines" / "publish.yaml").write_text(PUBLISH)
    (bare / "pipelines" / "all.yaml").write_text("pipeline: all\nsteps:\n  - call: {pipeline: publish}\n")
    monkeypatch.chdir(bare)
    main(["check", "--json", "pipelines/all.yaml"])
    assert "PL101" not in codes(capsys)


def test_folders_are_searched_for_pipelines(board: Path, capsys: Capture) -> None:
    (board / "ci.yaml").write_text("jobs:\n  pipeline: no\n")
    (board / "quoted.yml").write_text("---\n'pipeline': quoted\nsteps:\n  - transform: {value: '1'}\n")
    (board / "pipelines" / "broken.yaml").write_text("jobs: []\n")
    (board / "other" / "pipelines").mkdir(parents=True)
    (board / "other" / "pipelines" / "x.yaml").write_text("jobs: []\n")
    assert main(["check", "--format", "concise", "."]) == 1
    out, err = capsys.readouterr()
    assert "in 5 files" in err
    assert {line.partition(":")[0] for line in out.splitlines()} == {"pipelines/broken.yaml"}


def test_a_broken_configuration_is_said(board: Path, capsys: Capture) -> None:
    (board / "quire.toml").write_text("[nonsense]\n")
    assert main(["check", "board.yaml"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_nothing_is_started_and_no_socket_is_opened(
    board: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("looking must not do this")

    (board / ".mcp.json").write_text('{"mcpServers": {"travel": {"command": "false"}}}')
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "socketpair", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    looks = (["check"], ["parse"], ["show"], ["show", "--graph", "mermaid"], ["show", "--prompt", "1.do"])
    for verb, *options in looks:
        assert main([verb, "board.yaml", *options]) == 0


def test_checking_a_playbook_loads_nothing_of_pipelines(workspace: Path) -> None:
    (workspace / "a.playbook.md").write_text("# T\n\n## STEP 1: A\n\nGo.\n")
    program = (
        "import sys\nfrom quire.cli import main\nmain(['check', 'a.playbook.md'])\n"
        "heavy = ('quire.formats.pipeline', 'quire.workspace', 'quire.expr', 'yaml', 'asyncio', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_tree(board: Path, capsys: Capture) -> None:
    assert main(["parse", "board.yaml"]) == 0
    tree = json.loads(capsys.readouterr().out)
    (pipeline,) = tree["pipelines"]
    assert (tree["valid"], pipeline["pipeline"], pipeline["line"]) == (True, "board", 13)
    assert tree["schemas"][0]["fields"]["lines"] == {"type": "list", "of": {"type": "number"}, "required": False}
    kinds = [step["kind"] for step in pipeline["steps"]]
    assert kinds == ["for_each", "match", "fold", "parallel", "call", "agent"]
    each, match, fold, parallel, call, _ = pipeline["steps"]
    assert (each["over"], each["on_error"], each["output"]) == ("ctx.readers", "retry(2)", "reviews")
    assert each["do"]["tools"] == ["file__read"] and each["do"]["identity"] == "reviewer"
    assert match["cases"] == {"True": {"pipeline": "publish", "pass": ["reviews"]}}
    assert match["default"] == {"pipeline": "many.reject", "pass": {"why": "'bad'"}}
    assert fold["max_items"] == 9 and fold["do"] == {"kind": "transform", "value": "acc + 1", "line": 34}
    write = parallel["branches"]["write"]
    assert write["args"] == {"path": {"literal": "out.txt"}, "content": {"expr": "verdict"}}
    assert parallel["branches"]["list"]["command"] == {"literal": ["ls", "-l"]}
    assert call["pass"] == ["reviews"]


def test_the_tree_of_a_broken_file(workspace: Path, capsys: Capture) -> None:
    (workspace / "bad.yaml").write_text("pipeline: x\nsteps:\n  - nonsense: {}\n")
    assert main(["parse", "bad.yaml"]) == 1
    tree = json.loads(capsys.readouterr().out)
    assert (tree["valid"], tree["pipelines"], tree["errors"][0]["line"]) == (False, [], 3)


def test_the_outline(board: Path, capsys: Capture) -> None:
    assert main(["show", "board.yaml"]) == 0
    assert capsys.readouterr().out == OUTLINE
    data = json_of(capsys, "show", "board.yaml")
    assert [(one["name"], one["required"]) for one in data["inputs"]] == [
        ("readers", True),
        ("doc", True),
        ("extra", False),
    ]
    assert data["steps"][0]["steps"]["do"]["label"] == "1.do"
    assert data["pipelines"] == [
        {"pipeline": "publish", "steps": ["2", "5"]},
        {"pipeline": "many.reject", "steps": ["2"]},
    ]
    assert data["schemas"]["Other"]["required"] == ["x"]


OUTLINE = """1–85 calls · unpriced · writes shell ls, out.txt

board
Reviews things.

inputs (what steps read before any step writes it)
  readers  needed
  doc      needed
  extra    optional

steps
  1  reviews
      for each of ctx.readers, at most 1, 8 at once, failures tried 2 times more
      do:
        1.do  Ask the model
            asks the model: Read {ctx.doc} as {item.name}. {ctx.doc} {not_a_store}
            as reviewer
            is offered at most file__read
            the reply fits Review
      collect:
        1.collect  Compute
            is pipe
  2  verdict
      on all(reviews, r -> r.passed)
      True: runs publish, passes reviews
      otherwise: runs many.reject, passes why = 'bad'
  3  total
      one by one over ctx.readers, the first 9; begins with 0
      do:
        3.do  Compute
            is acc + 1
  4  Side by side
      side by side, a failure ends it
      write:
        4.write  file__write
            calls file__write
            with path = "out.txt"
            with content = !expr verdict
      list:
        4.list  shell
            runs a command
            with command = ["ls","-l"]
      collect:
        4.collect  Compute
            is get(ctx, 'extra', pipe)
  5  publish
      runs publish, passes reviews
  6  Ask the model
      asks the model: Sum up {verdict} and {pipe}.

schemas
  Review: passed bool, grade one of "good" | "bad", lines list of number (optional), by {name string}, next Other
  Other: x string

tools
  file__read (step 1.do)
  file__write (step 4.write)
  shell (step 4.list)

pipelines that it runs
  publish (steps 2, 5)
  many.reject (step 2)

approvals (effects that a person must agree to)
  step 4.write file__write  idempotent, write  no question before it
  step 4.list shell         write, elevated    no question before it

permissions it needs
  rye.execute.tool.rye.bash (step 4.list; write) command=ls
  rye.execute.tool.rye.file-system.read (step 1.do; read) path=*
  rye.execute.tool.rye.file-system.write (step 4.write; idempotent) path=out.txt
"""


def test_a_registered_pipeline_is_shown_by_its_name(board: Path, capsys: Capture) -> None:
    assert main(["show", "many.reject"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("no calls\n\nmany.reject\n") and "1  many.helper" in out and "why  needed" in out
    assert main(["show", "many.rejekt"]) == 2
    assert "did you mean many.reject?" in capsys.readouterr().err


def test_the_prompt_of_a_nested_agent(board: Path, capsys: Capture) -> None:
    assert main(["show", "board.yaml", "--prompt", "1.do", "-i", 'doc={"title": "T"}', "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    (message,) = found["messages"]
    assert message["content"] == 'Read {"title":"T"} as [item.name]. {ctx.doc} {not_a_store}'
    assert found["system"].startswith("You review.\n\nReply with one JSON object that fits this JSON Schema")
    assert found["tools"] == ["file__read"]
    assert err == "note: no value for readers: its name in brackets stands for it (-i readers=…)\n"


def test_the_prompt_of_an_agent_at_the_top(board: Path, capsys: Capture) -> None:
    assert main(["show", "board.yaml", "--prompt", "6"]) == 0
    assert capsys.readouterr().out == "--- user ---\nSum up [verdict] and [pipe].\n"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("1", "step 1 asks no model: it is a for_each"),
        ("2", "it runs one of the pipelines publish, many.reject"),
        ("4.write", "it calls the tool file__write"),
        ("5", "it runs the pipeline publish"),
        ("9", "unknown step 9: the steps are 1, 1.do, 1.collect, 2"),
    ],
)
def test_steps_without_a_prompt_say_why(board: Path, capsys: Capture, step: str, said: str) -> None:
    assert main(["show", "board.yaml", "--prompt", step]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_identity_would_fail(board: Path, capsys: Capture) -> None:
    (board / "quire.toml").write_text("")
    assert main(["show", "board.yaml", "--prompt", "1.do"]) == 2
    assert "step 1.do would fail: there is no identity reviewer" in capsys.readouterr().err


def test_the_prompts_of_a_run(workspace: Path, capsys: Capture) -> None:
    (workspace / "p.yaml").write_text(
        "pipeline: p\nsteps:\n"
        "  - for_each:\n      over: ctx.names\n      on_error: abort\n"
        "      do: {agent: {prompt: 'Greet {item}.'}}\n      collect: {transform: {value: pipe}}\n      output: all\n"
        "  - tool: {name: ask, args: {prompt: Go on?}}\n"
        "  - agent: {prompt: 'Close {all} with {pipe}.'}\n"
    )
    (workspace / "replies.json").write_text('[{"default": "hi"}]')
    assert main(["run", "p.yaml", "-i", 'names=["A", "B"]', "--script", "replies.json", "-q"]) == 4
    capsys.readouterr()
    assert main(["runs", "last", "--prompt", "1.do"]) == 0
    out, err = capsys.readouterr()
    assert out == "--- user ---\nGreet A.\n"
    assert "has asked 2 times: this is 1/for_each[0]/model; others by their path: 1/for_each[1]/model" in err
    assert main(["runs", "last", "--prompt", "1/for_each[1]"]) == 0
    assert capsys.readouterr().out == "--- user ---\nGreet B.\n"
    assert main(["runs", "last", "--prompt", "3"]) == 0
    out, err = capsys.readouterr()
    assert out == '--- user ---\nClose ["hi","hi"] with [pipe].\n'
    assert "has not asked its model" in err


def test_check_knows_built_in_tools_and_identities(workspace: Path, capsys: Capture) -> None:
    (workspace / "quire.toml").write_text("[agents.critic]\nsystem = 'Be hard.'\n")
    (workspace / "p.yaml").write_text(
        "pipeline: p\nsteps:\n"
        "- tool: {name: file__read, args: {file: a.txt}}\n"
        "- tool: {name: rye/file-system/glob, args: {pattern: 5}}\n"
        "- tool: {name: file__write, args: {path: a.txt, content: !expr 1 + 1}}\n"
        "- agent: {prompt: a, identity: critic}\n"
        "- agent: {prompt: a, identity: cirtic}\n"
        "- agent: {prompt: a, identity: default}\n"
        "- transform: {value: 1}\n"
    )
    assert main(["check", "p.yaml", "--json"]) == 1
    found = [(one["code"], one["message"]) for one in json.loads(capsys.readouterr().out)]
    assert found == [
        ("PL113", "file__read needs path"),
        ("PL113", 'file__read takes no "file"'),
        ("PL113", 'pattern of rye/file-system/glob is wrong: 5 is not of type "string"'),
        ("TY103", "content of file__write is wrong: it takes a text, not a number"),
        ("PL112", 'unknown identity "cirtic" in this workspace'),
        ("PL014", "value must be text that holds an expression, not the number 1"),
    ]


def test_check_loads_no_validator_for_what_is_plainly_right(workspace: Path) -> None:
    (workspace / "p.yaml").write_text("pipeline: p\nsteps:\n- tool: {name: file__read, args: {path: a.txt}}\n")
    code = "import sys; from quire.cli import main; main(['check', 'p.yaml']); print('jsonschema_rs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
