from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.growth import within

from quire.engine.interpreter.thread.compose import Composed, Granted, compose
from quire.errors import BadInputs, CannotStart, Refused
from quire.plan.thread import Acknowledgement, Context, Hook, HookAction, Parameter, Permission, Thread
from quire.source import Span
from quire.values import Value

FILES = (Permission("rye.execute.tool.rye.file-system.*", Span(3, 9)),)
FETCH = (Permission("rye.fetch.*"),)
LOW = {"tier": "low"}


@dataclass
class Items:
    """`asked` are the ids of knowledge in the order in which they were wanted."""

    directives: Mapping[str, Thread]
    untrusted: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=lambda: {f"k/{one}": f"[[{one}]]" for one in "abcdef"})
    asked: list[str] = field(default_factory=list)

    def directive(self, item_id: str) -> Thread | None:
        if item_id in self.untrusted:
            raise Refused(f"{item_id} is not signed")
        return self.directives.get(item_id)

    def knowledge(self, item_id: str) -> str | None:
        self.asked.append(item_id)
        if item_id in self.untrusted:
            raise Refused(f"{item_id} is not signed")
        return self.texts.get(item_id)


def thread(name: str, extends: str = "", **rest: object) -> Thread:
    made = Thread(
        name, extends=extends, permissions=FILES, permissions_text="<permissions/>", body="[[BODY]]", model=LOW
    )
    return replace(made, **rest)


def marks(text: str) -> str:
    return " ".join(re.findall(r"\[\[(\w+)\]\]", text))


def composed(*threads: Thread, given: Mapping[str, Value] | None = None, hooks: tuple[Hook, ...] = ()) -> Composed:
    """The first is the leaf."""
    return compose(threads[0].name, Items({one.name: one for one in threads}), given or {}, hooks)


@pytest.mark.parametrize(
    ("threads", "system", "message"),
    [
        (
            [
                thread("leaf", "mid", context=Context(after=("k/d",), suppress=("k/a",))),
                thread("mid", "root", context=Context(before=("k/c",))),
                thread("root", context=Context(system=("k/a", "k/b"))),
            ],
            "b",
            "c BODY d",
        ),
        (
            [
                thread("leaf", "root", context=Context(system=("k/b", "k/c"))),
                thread("root", context=Context(system=("k/a", "k/b"))),
            ],
            "a b c",
            "BODY",
        ),
        # seeds D1: the same knowledge is sent once, where the prompt has it first.
        ([thread("leaf", context=Context(system=("k/a",), before=("k/a",), after=("k/a", "k/a")))], "a", "BODY"),
        (
            [
                thread("leaf", "root", context=Context(before=("k/a",), after=("k/b",))),
                thread("root", context=Context(system=("k/a",), before=("k/b",))),
            ],
            "a",
            "b BODY",
        ),
        (
            [
                thread("leaf", "root", context=Context(suppress=("a",))),
                thread("root", context=Context(system=("k/a",))),
            ],
            "a",
            "BODY",
        ),
        (
            [
                thread("leaf", "root", context=Context(system=("k/a",), before=("k/b",))),
                thread("root", context=Context(suppress=("k/a",))),
            ],
            "",
            "b BODY",
        ),
    ],
)
def test_context_is_merged_root_first(threads: list[Thread], system: str, message: str) -> None:
    found = composed(*threads)
    assert (marks(found.system), marks(found.message)) == (system, message)


def knowledge_hook(item: str, position: str = "before", event: str = "thread_started", **rest: object) -> Hook:
    made = Hook("h", event, {}, (HookAction("execute", "knowledge", item),), position)
    return replace(made, **rest)


@pytest.mark.parametrize(
    ("hooks", "context", "system", "message"),
    [
        ([knowledge_hook("k/f")], Context(before=("k/a",), after=("k/b",)), "", "f a BODY b"),
        ([knowledge_hook("k/f", "after")], Context(before=("k/a",), after=("k/b",)), "", "a BODY b f"),
        ([knowledge_hook("k/f", "system")], Context(system=("k/a",)), "f a", "BODY"),
        ([knowledge_hook("k/f", event="build_system_prompt")], Context(system=("k/a",)), "f a", "BODY"),
        ([knowledge_hook("k/f", event="error")], Context(), "", "BODY"),
        ([knowledge_hook("k/f")], Context(suppress=("k/f",)), "", "BODY"),
        ([knowledge_hook("k/f")], Context(suppress=("h",)), "", "BODY"),
        ([knowledge_hook("k/${inputs.which}")], Context(), "", "d BODY"),
        ([knowledge_hook("k/${inputs.which}")], Context(suppress=("k/d",)), "", "BODY"),
        ([knowledge_hook("k/a")], Context(before=("k/b", "k/a")), "", "a b BODY"),
        ([knowledge_hook("k/b", "after")], Context(after=("k/a", "k/b")), "", "BODY a b"),
        ([knowledge_hook("k/b", "after")], Context(system=("k/b",)), "b", "BODY"),
        ([knowledge_hook("k/b", "before")], Context(system=("k/a",), after=("k/b",)), "a", "b BODY"),
        (
            [knowledge_hook("k/f", condition={"path": "directive", "op": "contains", "value": "leaf"})],
            Context(),
            "",
            "f BODY",
        ),
        (
            [knowledge_hook("k/f", condition={"path": "directive", "op": "eq", "value": "other"})],
            Context(),
            "",
            "BODY",
        ),
        ([replace(knowledge_hook("x"), actions=(HookAction("execute", "tool", "k/f"),))], Context(), "", "BODY"),
    ],
)
def test_hooks_bring_context_around_the_directives_own(
    hooks: list[Hook], context: Context, system: str, message: str
) -> None:
    found = composed(thread("leaf", context=context), given={"which": "d"}, hooks=tuple(hooks))
    assert (marks(found.system), marks(found.message)) == (system, message)


def test_a_recorded_thread_sends_knowledge_at_each_position() -> None:
    leaf = thread("leaf", context=Context(system=("k/a",), before=("k/a",)))
    found = compose("leaf", Items({"leaf": leaf}), {}, (knowledge_hook("k/a", "after"),), rules=3)
    assert (marks(found.system), marks(found.message)) == ("a", "a BODY a")


def test_hooks_of_ancestors_take_part_root_first_and_the_projects_last() -> None:
    found = composed(
        thread("leaf", "root", hooks=(Hook("leaf", "after_step", {}, ()), knowledge_hook("k/b"))),
        thread("root", hooks=(Hook("root", "after_step", {}, ()), knowledge_hook("k/a"))),
        hooks=(Hook("project", "after_step", {}, ()), knowledge_hook("k/c")),
    )
    assert [hook.id for hook in found.hooks if hook.event == "after_step"] == ["root", "leaf", "project"]
    assert marks(found.message) == "a b c BODY"


@pytest.mark.parametrize(
    ("threads", "error"),
    [
        ([thread("a", "b"), thread("b", "c"), thread("c", "a")], "Circular extends chain: a (chain: a → b → c)"),
        ([thread("a", "a")], "Circular extends chain: a (chain: a)"),
        ([thread("a", "b"), thread("b", "c"), thread("c", "b")], "Circular extends chain: b (chain: a → b → c)"),
        ([thread("a", "demo/nope")], "parent directive demo/nope not found: a extends it; correct its `extends`"),
    ],
)
def test_a_chain_that_goes_round_or_breaks_off(threads: list[Thread], error: str) -> None:
    with pytest.raises(CannotStart) as raised:
        composed(*threads)
    assert str(raised.value) == error


def test_a_directive_that_is_not_there() -> None:
    with pytest.raises(CannotStart, match="directive demo/x not found"):
        compose("demo/x", Items({}), {})


ALL = (Acknowledgement("unrestricted", "All."),)
SHELL = (Acknowledgement("elevated", "Shell."),)


@pytest.mark.parametrize(
    ("threads", "granted", "acknowledged"),
    [
        (
            [thread("leaf", "root"), thread("root", permissions=FETCH, acknowledged=ALL)],
            (Granted(FILES[0].capability, "leaf", FILES[0].span),),
            (),
        ),
        (
            [
                thread("leaf", "mid", permissions=()),
                thread("mid", "root", permissions=FETCH, acknowledged=SHELL),
                thread("root", acknowledged=ALL),
            ],
            (Granted("rye.fetch.*", "mid"),),
            SHELL,
        ),
        (
            [thread("leaf", "root", permissions=(), acknowledged=ALL), thread("root", acknowledged=SHELL)],
            (Granted(FILES[0].capability, "root", FILES[0].span),),
            (*SHELL, *ALL),
        ),
        ([thread("leaf", "root", permissions=()), thread("root", permissions=(), acknowledged=ALL)], (), ()),
    ],
)
def test_the_nearest_permissions_hold_with_their_acknowledgements(
    threads: list[Thread], granted: tuple[Granted, ...], acknowledged: tuple[Acknowledgement, ...]
) -> None:
    found = composed(*threads)
    assert (found.capabilities, found.acknowledged) == (granted, acknowledged)


def test_what_else_an_ancestor_says_is_its_own() -> None:
    found = composed(
        thread("leaf", "root", model={}),
        thread(
            "root",
            limits={"turns": 1},
            inputs=(Parameter("x", required=True),),
            outputs=(Parameter("y"),),
            success="s",
            failure="f",
            body="[[ROOT]]",
        ),
    )
    assert (found.limits_declared, found.model, found.inputs, found.outputs) == ({}, {}, {}, ())
    assert (found.success, found.failure, marks(found.message)) == ("", "", "BODY")
    assert found.chain == ("leaf", "root")
    assert found.warnings == ("leaf has no <model>: the default model is used",)


def test_missing_knowledge_is_a_warning_and_is_asked_for_once() -> None:
    items = Items({"leaf": thread("leaf", context=Context(system=("k/zzz", "k/a"), before=("k/zzz", "k/a")))})
    found = compose("leaf", items, {})
    assert (marks(found.system), marks(found.message)) == ("a", "BODY")
    assert found.warnings == ("knowledge k/zzz not found: <system> of leaf goes without it",)
    assert items.asked == ["k/zzz", "k/a"]


def test_the_suppressed_is_never_loaded() -> None:
    items = Items({"leaf": thread("leaf", context=Context(system=("k/a",), suppress=("k/a",)))}, frozenset({"k/a"}))
    assert compose("leaf", items, {}, [knowledge_hook("k/a")]).system == ""
    assert items.asked == []


@pytest.mark.parametrize("untrusted", ["leaf", "root", "k/a", "k/f"])
def test_whatever_is_not_trusted_stops_it(untrusted: str) -> None:
    root = thread("root", context=Context(system=("k/a",)))
    items = Items({"leaf": thread("leaf", "root"), "root": root}, frozenset({untrusted}))
    with pytest.raises(Refused, match=f"{untrusted} is not signed"):
        compose("leaf", items, {}, [knowledge_hook("k/f")])


def test_the_whole_first_message() -> None:
    leaf = thread(
        "deploy",
        description="Deploys <now> & well",
        permissions_text="<permissions><fetch>*</fetch></permissions>",
        inputs=(Parameter("target", required=True), Parameter("n", "integer", default="3")),
        outputs=(Parameter("path", description="Where"),),
        success="Deployed {input:target}.",
        failure="{input:target} failed.",
        body="\n<process>Go to {input:target}, {input:n} times.</process>\n",
        inside="Check {input:who|nobody}.",
        context=Context(system=("k/a",), before=("k/b",), after=("k/c",)),
    )
    found = composed(leaf, given={"target": "staging"})
    assert found.system == "[[a]]"
    assert found.message == (
        "[[b]]\n"
        "\n"
        '<directive name="deploy">\n'
        "<description>Deploys &lt;now&gt; &amp; well</description>\n"
        "<permissions><fetch>*</fetch></permissions>\n"
        "<process>Go to staging, 3 times.</process>\n"
        "Check nobody.\n"
        "<returns>\n"
        '  <output name="path">Where</output>\n'
        "</returns>\n"
        "</directive>\n"
        "\n"
        "[[c]]\n"
        "\n"
        "Carry out the directive above now: work through it step by step, with the tools that you are offered. "
        "When all of it is done, call directive_return with the outputs that it lists."
    )
    assert (found.success, found.failure) == ("Deployed staging.", "staging failed.")
    assert found.inputs == {"target": "staging", "n": 3}


def test_an_inherited_permission_is_shown_as_the_ancestor_wrote_it() -> None:
    found = composed(thread("leaf", "root", permissions=(), permissions_text=""), thread("root"))
    assert "<permissions/>" in found.message


def test_bad_inputs_stop_it() -> None:
    with pytest.raises(BadInputs, match="missing required input x"):
        composed(thread("leaf", inputs=(Parameter("x", required=True),)))


@given(st.text(max_size=40))
def test_neither_knowledge_nor_values_are_read_for_references(text: str) -> None:
    smuggled = f"{text} {{input:secret}} ${{inputs.secret}} ${{directive}}"
    leaf = thread("leaf", body="<{input:x}>", context=Context(system=("k",)))
    items = Items({"leaf": leaf}, texts={"k": smuggled, "h": smuggled})
    found = compose("leaf", items, {"x": smuggled, "secret": "S3CRET"}, [knowledge_hook("h")])
    assert "S3CRET" not in found.system + found.message
    assert f"<{smuggled}>" in found.message


def test_a_long_chain_takes_well_below_five_milliseconds() -> None:
    names = [f"d{at}" for at in range(5)]
    chain = {
        name: thread(
            name,
            names[at + 1] if at < 4 else "",
            context=Context(system=(f"k{at}a", f"k{at}b"), before=(f"k{at}c",), after=(f"k{at}d",)),
            hooks=(Hook("h", "after_step", {"path": "cost.spend", "op": "gt", "value": 1}, ()),),
            body="Do {input:x}. " * 200,
        )
        for at, name in enumerate(names)
    }
    texts = {f"k{at}{one}": "text " * 400 for at in range(5) for one in "abcd"}
    items = Items(chain, texts=texts)
    with within(20 * 0.005):
        for _ in range(20):
            compose("d0", items, {"x": "y"})
