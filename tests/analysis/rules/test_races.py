"""RC101: branches and items that write the same place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.rules.rule_cases import codes_of, findings_of

from quire.library.check import DocumentCheck
from quire.source import Source

FAN = """
pipeline: p
dialect: quire
steps:
  - transform: {{value: "'a.md'", output: place}}
  - for_each:
      over: {over}
      {keys}
      on_error: abort
      do: {do}
      collect: {{transform: {{value: pipe}}}}
"""


def fan(do: str, over: str = "ctx.rows", keys: str = "max_items: 9") -> str:
    return FAN.format(do=do, over=over, keys=keys)


WRITE = "{tool: {name: file__write, args: {path: out.md, content: hello}}}"


@pytest.mark.parametrize(
    "do",
    [
        WRITE,
        "{tool: {name: file__edit, args: {path: out.md, old: a, new: b}}}",
        "{tool: {name: file__write, args: {files: [{path: a.md, content: x}]}}}",
        "{tool: {name: state__set, args: {name: last, value: !expr item}}}",
        "{tool: {name: file__write, args: {path: !expr place, content: !expr item}}}",
        "{tool: {name: file__write, args: {path: !expr ctx.folder + '/x', content: !expr item}}}",
        "{steps: [{transform: {value: item}}, {tool: {name: file__write, args: {path: out.md, content: a}}}]}",
    ],
)
def test_all_items_of_a_fan_write_one_place(do: str) -> None:
    assert codes_of("stores", fan(do)) == ["RC101"]


@pytest.mark.parametrize(
    ("do", "over", "keys"),
    [
        ("{tool: {name: file__write, args: {path: !expr item.name, content: hello}}}", "ctx.rows", "max_items: 9"),
        ("{tool: {name: file__read, args: {path: out.md}}}", "ctx.rows", "max_items: 9"),
        (WRITE, "ctx.rows", "max_items: 1"),
        (WRITE, "ctx.rows", "max_parallel: 1"),
        (
            "{steps: [{transform: {value: item.name}}, "
            "{tool: {name: file__write, args: {path: !expr pipe, content: a}}}]}",
            "ctx.rows",
            "max_items: 9",
        ),
        (
            "{steps: [{transform: {value: item.name, output: own}}, "
            "{tool: {name: file__write, args: {path: !expr own, content: a}}}]}",
            "ctx.rows",
            "max_items: 9",
        ),
    ],
)
def test_items_that_do_not_share_a_place(do: str, over: str, keys: str) -> None:
    assert codes_of("stores", fan(do, over, keys)) == []


def test_a_loop_writes_one_place_in_order() -> None:
    text = f"""
pipeline: p
dialect: quire
steps:
  - fold: {{over: ctx.rows, init: "0", do: {WRITE}, output: last}}
  - repeat: {{do: {WRITE}, until: round > 3, max: 5}}
"""
    assert codes_of("stores", text) == []


PARALLEL = """
pipeline: p
steps:
  - parallel:
      on_error: abort
      branches:
        a: {{tool: {{name: file__write, args: {{path: {one}, content: x}}}}}}
        b: {{tool: {{name: file__write, args: {{path: {other}, content: y}}}}}}
      collect: {{transform: {{value: pipe}}}}
"""


@pytest.mark.parametrize(("one", "other", "found"), [("a.md", "./a.md", ["RC101"]), ("a.md", "b.md", [])])
def test_two_branches_write_a_file(one: str, other: str, found: list[str]) -> None:
    assert codes_of("stores", PARALLEL.format(one=one, other=other)) == found


def test_the_other_write_is_related() -> None:
    found = findings_of("stores", PARALLEL.format(one="a.md", other="a.md"))[0]
    assert "a.md" in found.message
    assert [one.message for one in found.related] == ["step 1.a writes it too"]
    assert found.confidence == "proven"


def test_steps_of_one_branch_run_in_order() -> None:
    text = """
pipeline: p
dialect: quire
steps:
  - parallel:
      on_error: abort
      branches:
        a:
          steps:
            - tool: {name: file__write, args: {path: a.md, content: x}}
            - tool: {name: file__edit, args: {path: a.md, old: x, new: y}}
        b: {transform: {value: "1"}}
      collect: {tool: {name: file__write, args: {path: a.md, content: x}}}
"""
    assert codes_of("stores", text) == []


def test_a_write_under_a_condition_is_possible() -> None:
    do = "{tool: {name: file__write, args: {path: out.md, content: hello}, when: item.is_last}}"
    assert [one.confidence for one in findings_of("stores", fan(do))] == ["possible"]


CALLEES = """
pipeline: main
steps:
  - parallel:
      on_error: abort
      branches:
        a: {{call: {{pipeline: save, pass: {{to: "{one}"}}}}}}
        b: {{call: {{pipeline: save, pass: {{to: "{other}"}}}}}}
      collect: {{transform: {{value: pipe}}}}
"""
SAVE = """
pipeline: save
input: {to: {type: string}}
dialect: quire
steps:
  - tool: {name: file__write, args: {path: !expr to, content: hello}}
"""


@pytest.mark.parametrize(("one", "other", "found"), [("'a.md'", "'a.md'", ["RC101"]), ("'a.md'", "'b.md'", [])])
def test_callees_write_too(
    one: str, other: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quire.toml").write_text("")
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "save.yaml").write_text(SAVE)
    text = CALLEES.format(one=one, other=other)
    (folder / "main.yaml").write_text(text)
    findings = DocumentCheck().of(Source.of(text, str(folder / "main.yaml")))
    assert [one.code.id for one in findings if one.code.id.startswith("RC")] == found


def test_a_callee_that_is_called_twice_in_order_does_not_race_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quire.toml").write_text("")
    folder = tmp_path / "pipelines"
    folder.mkdir()
    inner = PARALLEL.replace("pipeline: p", "pipeline: both").format(one="a.md", other="b.md")
    inner = inner.replace("b.md", "!expr ctx.to").replace("pipeline: both", "pipeline: both\ndialect: quire")
    (folder / "both.yaml").write_text(inner)
    text = """
pipeline: main
steps:
  - call: {pipeline: both, pass: {to: "'b.md'"}}
  - call: {pipeline: both, pass: {to: "'c.md'"}}
"""
    (folder / "main.yaml").write_text(text)
    findings = DocumentCheck().of(Source.of(text, str(folder / "main.yaml")))
    assert [one.code.id for one in findings] == []


def test_many_writes_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.analysis.rules import stores

    looked: list[object] = []
    original = stores._branch

    def counted(write: stores._Write, key: tuple[str, str, str]) -> str:
        looked.append(write)
        return original(write, key)

    monkeypatch.setattr(stores, "_branch", counted)
    branches = "\n".join(f"        b{n}: {WRITE}" for n in range(400))
    text = f"pipeline: p\nsteps:\n  - parallel:\n      on_error: abort\n      branches:\n{branches}\n"
    text += "      collect: {transform: {value: pipe}}\n"
    assert len(findings_of("stores", text)) == stores.MOST_PAIRS
    assert len(looked) <= 400
