"""Directives before they run: turns, tools, threads, documents, hooks and limits, as bounds and as flows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from tests.directives import directive as directive_text
from tests.given import given

from quire.analysis.flow_paths import flows_of
from quire.analysis.labels import Integrity
from quire.analysis.proof import Proof
from quire.analysis.quantities import Quantity, quantities
from quire.engine.premises import Premises
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.models.prices import ModelRate, Rate, Unpriced
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

TEXT = directive_text(
    "{name}",
    "<execute>{held}</execute>",
    '<process><step name="s">Do it.</step></process>',
    category="",
    tier="fast",
    meta="""<limits {limits} />
<hooks>{hooks}</hooks>""",
    more="""<inputs><input name="tag" type="string" required="false">A mark</input></inputs>
<outputs><output name="out" type="string">x</output></outputs>""",
)

READ = "<tool>rye.file-system.read</tool>"
FORK = "<tool>rye.agent.threads.thread_directive</tool>"
PIPELINE = """
pipeline: part
steps:
  - agent: {prompt: "Look at {ctx.x}", capabilities: {tools: []}}
  - tool: {name: ask, args: {prompt: Fine?, type: confirm}}
"""
DENIED = '<condition path="error.type" op="eq" value="permission_denied"/>'
TIMEOUT = '<condition path="error.type" op="eq" value="timeout"/>'
RESOURCE = '<condition path="error.resource" op="contains" value="write"/>'
CONTROL = '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">{}</action>'


def directive(name: str = "one", limits: str = 'turns="3"', held: str = READ, hooks: str = "") -> str:
    return TEXT.format(name=name, limits=limits, held=held, hooks=hooks)


def control(event: str, decision: str, condition: str = "") -> str:
    action = CONTROL.format(f'<param name="action">{decision}</param>')
    return f'<hook id="h" event="{event}">{condition}{action}</hook>'


def proof_of(folder: Path, text: str, **others: str) -> Proof:
    files = {"quire.toml": "", ".ai/directives/one.md": text, **others}
    given(files, folder)
    settings = load_settings(Workspace(folder), {"QUIRE_HOME": str(folder / "user")})
    plan = load(folder / ".ai/directives/one.md").plan
    assert plan is not None
    return Foresight(settings).proof(plan, "", "small")


def most(proof: Proof, kind: str) -> str:
    return str(proof.cost.amount(kind))


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (directive(), ("3", "600", "0", "0")),
        (directive(limits=""), ("25", "5,000", "0", "0")),
        (directive(held=READ + "<tool>ask</tool>"), ("3", "600", "600", "0")),
        # A model call that fails is made again only if a hook says so, and three times at most.
        (directive(hooks=control("error", "retry")), ("9", "600", "0", "0")),
        (directive(hooks=control("error", "fail")), ("3", "600", "0", "0")),
        (directive(hooks=control("error", "retry", DENIED)), ("3", "600", "0", "0")),
        (directive(hooks=control("error", "retry", f"<any>{DENIED}{TIMEOUT}</any>")), ("9", "600", "0", "0")),
        (directive(hooks=control("error", "retry", f"<all>{DENIED}{TIMEOUT}</all>")), ("3", "600", "0", "0")),
        (directive(hooks=control("error", "retry", f"<not>{DENIED}</not>")), ("9", "600", "0", "0")),
        (directive(hooks=control("error", "retry", RESOURCE)), ("3", "600", "0", "0")),
        (directive(hooks=control("after_step", "escalate")), ("3", "600", "3", "0")),
        # A person may raise the limit of turns as often as it is reached, or only that of money.
        (directive(hooks=control("limit", "escalate")), ("∞", "∞", "∞", "0")),
        (
            directive(
                hooks=control("limit", "escalate", '<condition path="limit_code" op="eq" value="spend_exceeded"/>')
            ),
            ("3", "600", "∞", "0"),
        ),
        # Itself, and those that it starts: 2 of them, in 2 levels below.
        (directive(limits='turns="3" spawns="2" depth="2"', held=FORK), ("21", "4,200", "0", "6")),
        (directive(limits='turns="3" spawns="2" depth="1"', held=FORK), ("9", "1,800", "0", "2")),
        (directive(limits='turns="3" spawns="0"', held=FORK), ("3", "600", "0", "0")),
        (
            directive(limits='turns="3" spawns="2" depth="2"', held="<directive>one</directive>"),
            ("21", "4,200", "0", "6"),
        ),
        (directive(limits='turns="3" spawns="2" depth="2"', held="<directive>two</directive>"), ("3", "600", "0", "0")),
    ],
)
def test_counts(tmp_path: Path, text: str, counts: tuple[str, ...]) -> None:
    proof = proof_of(tmp_path, text)
    found = tuple(most(proof, kind) for kind in ("model_calls", "tool_calls", "questions", "threads"))
    assert found == counts
    assert proof.bound("model_calls").least == 1


@pytest.mark.parametrize("name", ["file__read", "rye.file-system.read", "rye/file-system/fs_read"])
def test_every_name_of_a_tool_is_that_tool(tmp_path: Path, name: str) -> None:
    """newcomer M7: `file__read` was text from outside, elevated, and a tool that writes."""
    proof = proof_of(tmp_path, directive(held=f"<tool>{name}</tool>"))
    (tool,) = [effect.tool for effect in proof.effects]
    assert (tool.capability, tool.effect, tool.tier) == ("rye.execute.tool.rye.file-system.read", "read", "safe")
    assert (tool.gives, tool.sends_out) == (Integrity.WORKSPACE, False)
    assert flows_of(proof) == ()


def test_a_child_that_may_do_less_ends_the_tree(tmp_path: Path) -> None:
    limits = 'turns="3" spawns="2" depth="5"'
    text = directive(limits=limits, held="<directive>two</directive>")
    other = directive("two", 'turns="9"', READ)
    assert most(proof_of(tmp_path, text, **{".ai/directives/two.md": other}), "model_calls") == "9"


def test_a_thread_that_names_directives_starts_only_these(tmp_path: Path) -> None:
    """real-work M5, N11: the lead holds the tool that starts any directive, and names one that starts none."""
    text = directive(limits='turns="12" spawns="4"', held=f"<directive>two</directive>{FORK}")
    other = {".ai/directives/two.md": directive("two", 'turns="6"', READ)}
    # 12 of its own, and 4 children: the model may raise their turns to those of the lead.
    assert most(proof_of(tmp_path, text, **other), "model_calls") == "60"
    assert most(proof_of(tmp_path, directive(limits='turns="12" spawns="4"', held=FORK), **other), "threads") != "4"


def test_a_child_without_permissions_has_those_of_its_parent(tmp_path: Path) -> None:
    held = "<directive>two</directive><tool>ask</tool><pipeline>part</pipeline><tool>rye.file-system.write</tool>"
    text = directive(limits='turns="1" spawns="1" depth="1"', held=held)
    start, end = text.index("    <permissions>"), text.index("</permissions>") + len("</permissions>")
    other = (text[:start] + text[end:]).replace('name="one"', 'name="two"')
    proof = proof_of(tmp_path, text, **{".ai/directives/two.md": other, "pipelines/part.yaml": PIPELINE})
    # Each of the two asks a person 200 times itself, and 200 times by the pipeline.
    assert (most(proof, "questions"), most(proof, "model_calls")) == ("800", "402")
    assert most(proof, "tools of class idempotent") == "400"
    assert sum(one.place.document == "part" for one in proof.questions) == 1
    assert {str(one.often) for one in proof.effects} == {"400"}


def test_documents_that_it_may_run_count_for_each_call(tmp_path: Path) -> None:
    text = directive(held="<pipeline>part</pipeline>")
    proof = proof_of(tmp_path, text, **{"pipelines/part.yaml": PIPELINE})
    assert most(proof, "model_calls") == "603"
    assert most(proof, "questions") == "600"
    assert any(one.place.document == "part" for one in proof.questions)


@pytest.mark.parametrize("held", ["pipelin?.part", "pipe[l]ine.*", "*.part", "[!a]ipeline.par?"])
def test_a_pattern_with_single_characters_covers_documents(tmp_path: Path, held: str) -> None:
    text = directive(held=f"<tool>rye.file-system.read</tool></execute><execute>{held}")
    proof = proof_of(tmp_path, text, **{"pipelines/part.yaml": PIPELINE})
    assert (most(proof, "model_calls"), most(proof, "questions")) == ("603", "600")


@pytest.mark.parametrize("held", ["direct?ve.one", "directi[v]e.*"])
def test_a_pattern_with_single_characters_covers_directives(tmp_path: Path, held: str) -> None:
    text = directive(limits='turns="3" spawns="2" depth="1"', held=f"{READ}</execute><execute>{held}")
    assert most(proof_of(tmp_path, text), "threads") == "2"


@pytest.mark.parametrize(
    ("held", "seconds"),
    [
        ("rye.bash", 660),
        ("rye.bash.*", 660),
        ("rye.bas?", 660),
        ("python.work", 86_460),
        ("pytho?.work", 86_460),
        ("*.work", 86_460),
        ("mc[p].slow.*", 1_180),
    ],
)
def test_a_pattern_takes_as_long_as_the_slowest_tool_that_it_covers(tmp_path: Path, held: str, seconds: int) -> None:
    servers = '{"mcpServers": {"slow": {"command": "x", "timeout": 500}}}'
    proof = proof_of(tmp_path, directive(limits='turns="1"', held=f"<tool>{held}</tool>"), **{".mcp.json": servers})
    (fact,) = proof.effects
    assert fact.tool.seconds == seconds


@pytest.mark.parametrize("held", ["rye.web.fetch", "rye.web.fetch.*", "?cp.notes.*", "*notes*"])
def test_a_pattern_brings_what_the_worst_tool_that_it_covers_brings(tmp_path: Path, held: str) -> None:
    servers = '{"mcpServers": {"notes": {"command": "x"}}}'
    proof = proof_of(tmp_path, directive(held=f"<tool>{held}</tool>"), **{".mcp.json": servers})
    (fact,) = proof.effects
    assert fact.tool.gives is Integrity.OUTSIDE
    assert fact.tool.sends_out


def money_of(proof: Proof, *models: str) -> Quantity:
    """Return the money of a proof in which these models, and no others, have a price."""

    def rate(spec: str) -> Rate:
        return ModelRate(spec, Decimal(1), Decimal(1), context=1000) if spec in models else Unpriced(spec, "not known")

    return next(one for one in quantities(proof, Premises(), rate) if one.name == "money")


def test_runs_that_it_launches_are_paid_from_its_limit_of_spend(tmp_path: Path) -> None:
    limits = 'turns="1" tokens="100" spend="0.5"'
    part = {"pipelines/part.yaml": "pipeline: part\nsteps:\n  - transform: {value: '1'}\n"}
    default = {"quire.toml": '[models]\ndefault = "small"\n'}
    alone = money_of(proof_of(tmp_path, directive(limits=limits), **part), "small")
    assert (alone.most.as_number or 0) < 0.5 * 10**12
    proof = proof_of(tmp_path, directive(limits=limits, held="<pipeline>part</pipeline>"), **part, **default)
    found = money_of(proof, "small")
    assert (found.number, found.sure) == (5 * 10**11, True)
    assert "runs that a thread launches are paid from its limit of spend" in found.premises
    # Which model launched runs have is known only from the settings: that of the run does not count for them.
    other = proof_of(tmp_path, directive(limits=limits, held="<pipeline>part</pipeline>"), **part)
    assert not money_of(other, "small").sure


def test_nothing_bounds_how_long_a_launched_run_takes(tmp_path: Path) -> None:
    proof = proof_of(tmp_path, directive(held="<pipeline>part</pipeline>"), **{"pipelines/part.yaml": PIPELINE})
    (reason,) = proof.cost.amount("span").reasons
    assert reason.text == "step thread: nothing bounds how long a run takes that one launches"
    counts = {one.name: one for one in quantities(proof, Premises())}
    assert all("are counted on their own" in str(counts[name].premises) for name in ("model_calls", "output_tokens"))
    assert not counts["time"].premises


def test_without_a_limit_of_spend_launched_runs_may_cost_anything(tmp_path: Path) -> None:
    hooks = control("limit", "escalate", '<condition path="limit_code" op="eq" value="spend_exceeded"/>')
    text = directive(held="<pipeline>part</pipeline>", hooks=hooks)
    assert proof_of(tmp_path, text).cost.amount("money of launches").is_endless


def test_a_limit_of_tokens_bounds_what_is_written(tmp_path: Path) -> None:
    assert most(proof_of(tmp_path, directive(limits='turns="9" tokens="5000"')), "output of small") == "5,000"
    assert most(proof_of(tmp_path, directive(limits='turns="1" tokens="5000"')), "output of small") == "4,096"


def test_a_limit_of_time_is_passed_by_one_turn_at_most(tmp_path: Path) -> None:
    # 25 rounds of reading files for 360 s each, one model call of 3600 s, and loading what it is composed of.
    proof = proof_of(tmp_path, directive(limits='turns="100" duration_seconds="60"'))
    assert most(proof, "span") == f"{(60 + 3600 + 25 * 360 + 360) * 1000:,}"


def test_hooks_act_with_values_of_their_events(tmp_path: Path) -> None:
    action = (
        '<action primary="execute" item_type="tool" item_id="rye/file-system/write">'
        '<param name="path">notes.txt</param><param name="content">${outputs.out} {input:tag?}</param></action>'
    )
    hooks = f'<hook id="h" event="after_complete">{action}</hook>'
    proof = proof_of(tmp_path, directive(held="<tool>rye.file-system.*</tool>", hooks=hooks))
    (fact,) = [one for one in proof.effects if not one.by_model]
    assert fact.tool.capability == "rye.execute.tool.rye.file-system.write"
    assert (fact.arguments["path"].constant, str(fact.often)) == ("notes.txt", "1")
    assert fact.arguments["content"].label.integrity >= Integrity.MODEL
    assert most(proof, "tool_calls") == "601"


def test_a_missing_ancestor_makes_everything_possible(tmp_path: Path) -> None:
    text = directive().replace('version="1.0.0"', 'version="1.0.0" extends="nowhere"')
    proof = proof_of(tmp_path, text)
    assert proof.unknown == ("nowhere",)
    assert proof.cost.amount("tool_calls").is_endless


def test_without_settings_children_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(directive(held=FORK))
    plan = load(tmp_path / "one.md").plan
    assert plan is not None
    assert Foresight(None).proof(plan).cost.amount("model_calls").is_endless
