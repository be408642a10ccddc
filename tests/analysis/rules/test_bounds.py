"""BD101 to BD105: amounts without a bound, and above the limit of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.analysis.rules.rule_cases import codes_of, findings_of, proof_of
from tests.directives import directive
from tests.given import given

from quire.analysis.amounts import Reason, endless
from quire.analysis.costs import OUTPUT_OF, SPAN, Cost
from quire.analysis.rules import RuleContext, bounds
from quire.diagnostics import edits_of, fix_of
from quire.engine.premises import Premises
from quire.library.check import DocumentCheck
from quire.source import Source, Span

HEAD = "pipeline: p\ndialect: quire\nsteps:\n"
AGENT = "{agent: {prompt: hi, capabilities: {tools: []}}}"
READ = "{tool: {name: file__read, args: {path: !expr item}}}"
PURE = "{transform: {value: item}}"


def fan(do: str, over: str = "over: ctx.rows", more: str = "") -> str:
    return f"""{HEAD}  - for_each:
      {over}
      {more}on_error: abort
      do: {do}
      collect: {{transform: {{value: pipe}}}}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (fan(READ), ["BD101"]),
        (fan(READ, more="max_items: 5\n      "), []),
        (fan(PURE), []),
        (fan(READ, "items: [a, b]"), []),
        (f"{HEAD}  - fold: {{over: ctx.rows, init: '0', do: {READ}, output: x}}\n", ["BD101"]),
        (f"{HEAD}  - fold: {{over: ctx.rows, init: '0', do: {READ}, output: x, max_items: 3}}\n", []),
        (f"{HEAD}  - repeat: {{do: {AGENT}, until: acc, max: 9}}\n", []),
        (
            fan(READ).replace("dialect: quire\n", "dialect: quire\ninput: {rows: {type: list, of: {type: string}}}\n"),
            ["BD101"],
        ),
        (
            fan(READ).replace(
                "dialect: quire\n", "dialect: quire\ninput: {rows: {type: list, max_items: 9, of: {type: string}}}\n"
            ),
            [],
        ),
    ],
)
def test_fans_without_a_limit(text: str, found: list[str]) -> None:
    assert codes_of("bounds", text) == found


def test_a_list_of_a_model_has_no_limit_but_that_of_the_engine() -> None:
    schema = "schema: Names\nfields: {names: {type: list, of: {type: string}}}\n---\n"
    first = "  - agent: {prompt: hi, schema: Names, capabilities: {tools: []}, output: found}\n"
    text = schema + fan(READ, "over: found.names").replace("steps:\n", f"steps:\n{first}")
    assert codes_of("bounds", text) == ["BD101"]
    assert codes_of("bounds", text.replace("{type: list,", "{type: list, max_items: 5,")) == []


def test_the_size_from_which_on_a_run_stops() -> None:
    found = findings_of("bounds", fan(AGENT))
    assert [one.code.id for one in found] == ["BD105"]
    assert "|rows| model calls (more than 100 from |rows| = 101 on)" in found[0].message
    assert found[0].help == (
        "at most 100 items fit the limit of 100 calls (max_items: 100); or run it with --limit calls=N, "
        "or raise max_pipeline_spawns under [safety.spawn] in quire.toml"
    )


@pytest.mark.parametrize(("calls", "cap", "items"), [(1, 100, 100), (3, 100, 33), (7, 50, 7)])
def test_the_number_that_fits_is_proposed_and_written(calls: int, cap: int, items: int) -> None:
    """newcomer M3: the fix wrote 11 where 100 fit."""
    text = fan("{fold: {items: %s, init: '1', do: %s, output: o}}" % (list(range(calls)), AGENT))  # noqa: UP031
    premises = Premises(spawns=cap)
    source, [found] = Source.of(text, "p.yaml"), findings_of("bounds", text, premises=premises)
    assert f"at most {items} items fit the limit of {cap} calls" in found.help
    fix = fix_of(source, found)
    assert fix is not None
    [edit] = fix.edits
    fixed = text[: edit.span.start] + edit.new + text[edit.span.end :]
    assert f"max_items: {items}\n" in fixed and findings_of("bounds", fixed, premises=premises) == []


def test_a_limit_that_only_lacks_the_agreement_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """real-work: it said to raise the limit that quire.toml had raised already."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    given({"quire.toml": "[safety.spawn]\nmax_pipeline_spawns = 500\n", "p.yaml": fan(AGENT)}, tmp_path)
    findings = DocumentCheck().of(Source.of(fan(AGENT), str(tmp_path / "p.yaml")))
    (help,) = [one.help for one in findings if one.code.id == "BD105"]
    assert help.endswith("or confirm max_pipeline_spawns = 500 of quire.toml: quire trust workspace")


def test_corrections_are_said_and_do_not_lower_the_limit_that_is_proposed() -> None:
    schema = "schema: Names\nfields: {names: {type: string}}\n---\n"
    agent = "{agent: {prompt: hi, schema: Names, capabilities: {tools: []}}}"
    found = findings_of("bounds", schema + fan(agent))[0]
    assert (
        "with turns, corrections and further tries up to 3·|rows| (more than 100 from |rows| = 34 on)" in found.message
    )
    assert "(max_items: 100)" in found.help


@pytest.mark.parametrize(
    ("items", "cap", "found"), [(100, 100, []), (101, 100, ["BD105"]), (101, None, []), (3, 2, ["BD105"])]
)
def test_the_limit_of_a_run_decides(items: int, cap: int | None, found: list[str]) -> None:
    text = fan(AGENT, more=f"max_items: {items}\n      ")
    assert [one.code.id for one in findings_of("bounds", text, premises=Premises(spawns=cap))] == found


def test_a_fan_under_a_limit_that_only_corrections_pass_is_not_reported() -> None:
    schema = "schema: Names\nfields: {names: {type: string}}\n---\n"
    agent = "{agent: {prompt: hi, schema: Names, capabilities: {tools: []}}}"
    assert codes_of("bounds", schema + fan(agent, more="max_items: 50\n      ")) == []


def test_two_sizes_are_looked_at_one_by_one() -> None:
    both = fan(AGENT) + fan(AGENT, "over: ctx.lines").removeprefix(HEAD)
    message = findings_of("bounds", both)[0].message
    assert "from |lines| = 101 or |rows| = 101 on" in message


def test_a_fix_adds_a_limit_and_is_not_safe() -> None:
    text = fan(READ)
    source, found = Source.of(text, "p.yaml"), findings_of("bounds", text)[0]
    fix = fix_of(source, found)
    assert fix is not None
    assert not edits_of(source, found)
    [edit] = fix.edits
    fixed = text[: edit.span.start] + edit.new + text[edit.span.end :]
    assert codes_of("bounds", fixed) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}  - for_each: {{over: ctx.rows, on_error: abort, do: {READ}, collect: {PURE}}}\n",
        fan(READ, "over: >-\n        ctx.rows"),
        fan(READ, "over: ctx.rows\n        + ctx.more"),
    ],
)
def test_a_text_without_one_certain_place_gets_no_fix(text: str) -> None:
    assert [one.fix for one in findings_of("bounds", text) if one.code.id == "BD101"] == [None]


@pytest.mark.parametrize(("kind", "found"), [(f"{OUTPUT_OF}m", "BD102"), (SPAN, "BD103")])
def test_reasons_that_a_line_would_remove_are_reported(kind: str, found: str) -> None:
    proof = proof_of(fan(PURE))
    cost = Cost()
    cost.spend(kind, endless(Reason("step 1: it is not limited", "[runs] x = 1", Span(3, 4)), Reason("no remedy")))
    [finding] = bounds.check(replace(proof, cost=cost), RuleContext(Source.of("", "p.yaml")))
    assert (finding.code.id, finding.help, finding.span) == (found, "[runs] x = 1", Span(3, 4))


DIRECTIVE = directive(
    "look", "<execute><tool>rye.file-system.*</tool></execute>", "Look at it.", category="x", tier="fast"
)


@pytest.mark.parametrize(("items", "found"), [(3, ["BD104"]), (2, [])])
def test_calls_of_directives_count_before_a_run(
    items: int, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quire.toml").write_text("[safety.spawn]\nmax_pipeline_spawns = 2\n")
    folder = tmp_path / ".ai" / "directives"
    given({"look.md": DIRECTIVE}, folder)
    text = fan("{call: {pipeline: look}}", f"items: {list(range(items))}")
    (tmp_path / "p.yaml").write_text(text)
    findings = DocumentCheck().of(Source.of(text, str(tmp_path / "p.yaml")))
    assert [one.code.id for one in findings if one.code.id in ("BD104", "PL116")] == found


def test_a_limit_that_is_passed_without_directives_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quire.toml").write_text("[safety.spawn]\nmax_pipeline_spawns = 2\n")
    text = fan(AGENT, "items: [a, b, c]")
    (tmp_path / "p.yaml").write_text(text)
    findings = DocumentCheck().of(Source.of(text, str(tmp_path / "p.yaml")))
    assert [one.code.id for one in findings if one.code.id[:2] == "BD" or one.code.id == "PL116"] == ["PL116"]
