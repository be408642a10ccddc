"""From a file to a thread."""

from __future__ import annotations

import pytest
from tests.formats.directive.directives import document, read

from quire.errors import BadDocument, CannotStart
from quire.formats.directive.lower import lower, thread
from quire.library.document import load
from quire.plan.thread import Acknowledgement, Context, HookAction, Thread
from quire.values import Value


def lowered(metadata: str = "", root: str = "", body: str = "Do it.") -> Thread:
    directive = read(metadata, root, body).directive
    assert directive is not None
    return thread(directive)


@pytest.mark.parametrize(
    ("metadata", "limits"),
    [
        ("<limits turns='6' tokens='4096' />", {"turns": 6, "tokens": 4096}),
        ("<limits max_turns='6' max_tokens='4096' />", {"turns": 6, "tokens": 4096}),
        ("<limits max_turns='6' turns='7' />", {"turns": 7}),
        ("<limits spend='0.5' spend_currency='12' />", {"spend": 0.5, "spend_currency": "12"}),
        (
            "<cost><context turns='20' spawn_threshold='5'>100</context><spend currency='USD'>3</spend></cost>",
            {"turns": 20, "spawns": 5, "tokens": 100, "spend": 3, "spend_currency": "USD"},
        ),
        (
            "<cost><context turns='20' /><duration>9</duration></cost><limits max_turns='6' />",
            {"turns": 6, "duration_seconds": 9},
        ),
        ("", {}),
    ],
)
def test_limits(metadata: str, limits: dict[str, Value]) -> None:
    assert lowered(metadata).limits == limits


def test_a_process_inside_the_fence() -> None:
    root = """
    <process>
      <step name="look">
        <description>a &lt; b &amp; c</description>
        <fetch scope="knowledge" query="{input:q}" />
      </step>
      <execute item_type="tool" item_id="rye/bash">
        <param name="command" value='say "hi" &amp; go' /><param name="n">2</param></execute>
      <sign item_id="d" item_type="directive" />
      <raw>a & b</raw>
    </process>
    <success_criteria><criterion>It is done</criterion></success_criteria>"""
    work = lowered(root=root)
    assert (
        work.inside
        == """\
<process>
  <step name="look">
    <description>a < b & c</description>
    `rye_fetch(query="{input:q}", scope="knowledge")`
  </step>
  `rye_execute(item_type="tool", item_id="rye/bash", parameters={"command": "say \\"hi\\" & go", "n": "2"})`
  `rye_sign(item_type="directive", item_id="d")`
  <raw>a & b</raw>
</process>

<success_criteria><criterion>It is done</criterion></success_criteria>"""
    )
    assert work.body == "Do it."


def test_the_rest() -> None:
    work = lowered(
        "<model tier='low' id='m' />"
        "<permissions>*<acknowledge risk='unrestricted'>All.</acknowledge></permissions>"
        "<context><system>a</system><before>b</before><after>c</after><suppress>d</suppress></context>"
        "<hooks><hook id='h' event='limit'><action><fetch query='q' scope='directive'><param name='p'>${x}</param>"
        "</fetch></action></hook></hooks>"
    )
    assert [one.capability for one in work.permissions] == ["rye.*"]
    assert work.permissions_text.startswith("<permissions>*<acknowledge")
    assert work.acknowledged == (Acknowledgement("unrestricted", "All."),)
    assert work.model == {"tier": "low", "id": "m"}
    assert work.context == Context(("a",), ("b",), ("c",), ("d",))
    (hook,) = work.hooks
    parameters = (("query", "q"), ("scope", "directive"), ("p", "${x}"))
    assert (hook.id, hook.event, hook.condition, hook.position) == ("h", "limit", {}, "before")
    assert hook.actions == (HookAction("fetch", "", "", parameters),)


def test_the_plan() -> None:
    directive = read(
        root="<inputs><input name='n' type='integer' required='true' default='3' /><input name='b' type='boolean' />"
        "<input name='o' type='object' required='true' /><input /></inputs>"
    ).directive
    assert directive is not None
    plan = lower(directive)
    assert (plan.format, plan.title) == ("directive", "greet")
    assert [(one.name, one.type, one.default, one.required) for one in plan.inputs] == [
        ("n", "number", "3", False),
        ("b", "boolean", None, False),
        ("o", "string", None, True),
    ]
    (step,) = plan.body.steps
    assert (step.position, step.label) == (1, "thread") and isinstance(step.work, Thread)


def test_lone_surrogates_do_not_reach_a_model() -> None:
    assert lowered(body="a\ud800b").body == "a\ufffdb"


def test_documents(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("w") / ".ai"
    (folder / "directives").mkdir(parents=True)
    (folder / "knowledge").mkdir()
    good, bad, knowledge = (folder / name for name in ("directives/a.md", "directives/b.md", "knowledge/k.md"))
    good.write_text(document())
    bad.write_text(document("<limits turn='6' />"))
    knowledge.write_text("```yaml\nname: k\n```\n")
    assert load(good).runnable().format == "directive"
    with pytest.raises(BadDocument, match=r"b\.md:6:\d+: DR021"):
        load(bad).runnable()
    with pytest.raises(CannotStart, match="knowledge"):
        load(knowledge)
