from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.errors import Denied
from quire.trust.capabilities import (
    Grants,
    Primary,
    canonical,
    capability,
    glob,
    grant_for,
    mcp_tool,
    pattern_for,
    python_tool,
)

FILES = "rye.execute.tool.rye.file-system"
CASES = Path(__file__).parents[3] / "shared" / "conformance" / "cases" / "directive"


@pytest.mark.parametrize(
    ("grants", "request_", "allowed"),
    [
        ([f"{FILES}.*"], ("execute", "tool", "rye/file-system/write"), True),
        ([f"{FILES}.*"], ("execute", "tool", "rye/file-system/a/b"), True),
        ([f"{FILES}.*"], ("execute", "tool", "rye/file-systems/write"), False),
        ([f"{FILES}.*"], ("execute", "tool", "rye/bash"), False),
        ([], ("execute", "tool", "rye/bash"), False),
        (["*"], ("sign", "directive", "a/b"), True),
        (["rye.*"], ("sign", "directive", "a/b"), True),
        (["rye.execute.tool.*"], ("execute", "directive", "x"), False),
        (["rye.execute.tool.rye.bash.*"], ("execute", "tool", "rye/bash"), True),
        (["rye.execute.tool.rye.bash"], ("execute", "tool", "rye/bash/x"), False),
        (["rye.execute.tool.RYE.bash"], ("execute", "tool", "rye/bash"), False),
        (["rye.fetch.knowledge.rye/core/*"], ("fetch", "knowledge", "rye/core/terms"), True),
        # A search needs some fetch of its type, whatever that is.
        (["rye.fetch.directive.demo.one"], ("fetch", "directive", ""), True),
        (["rye.fetch.directive.*"], ("fetch", "knowledge", ""), False),
        (["rye.execute.directive.x"], ("execute", "directive", ""), False),
        # Old names, in grants and in calls.
        (["rye.execute.tool.rye.agent.threads.spawn_thread"], ("execute", "tool", "thread_directive"), True),
        ([f"{FILES}.fs_write.*"], ("execute", "tool", "file__write"), True),
        ([f"{FILES}.write"], ("execute", "tool", "rye/file-system/fs_write"), True),
        # Always allowed, and nothing that only looks like it.
        ([], ("execute", "tool", "directive_return"), True),
        ([], ("execute", "tool", "rye/agent/threads/internal/control"), True),
        ([], ("execute", "tool", "rye/agent/threads/directive_return"), True),
        ([], ("execute", "tool", "rye/agent/threads/internal"), False),
        ([], ("execute", "tool", "rye/agent/threads/thread_directive"), False),
        ([], ("fetch", "tool", "rye/agent/threads/internal/control"), False),
        ([], ("execute", "tool", "directive_return/x"), False),
        ([], ("execute", "tool", "rye/agent/threads/internal/../../../bash"), False),
        # Where a way leads that goes up again, no grant says.
        ([f"{FILES}.*"], ("execute", "tool", "rye/file-system/../bash"), False),
        (["rye.*"], ("fetch", "knowledge", "a/./b"), False),
        (["rye.fetch.knowledge.a.*"], ("fetch", "knowledge", "a/..b/c.d"), True),
        # Wildcards in the middle, and in a request.
        (["rye.execute.tool.*.write"], ("execute", "tool", "rye/file-system/write"), True),
        (["rye.execute.tool.a*a"], ("execute", "tool", "a"), False),
        (["rye.execute.tool.a*b*c"], ("execute", "tool", "axbxc"), True),
        (["rye.execute.tool.a*b*c"], ("execute", "tool", "axcxb"), False),
        (["rye.execute.tool.a.?"], ("execute", "tool", "a/b"), True),
        (["rye.execute.tool.a.?"], ("execute", "tool", "a/bc"), False),
        (["rye.execute.tool.a.?.*"], ("execute", "tool", "a/b"), True),
        (["rye.execute.tool.[ab]?[!c-d]"], ("execute", "tool", "axe"), True),
        (["rye.execute.tool.[ab]?[!c-d]"], ("execute", "tool", "axd"), False),
        (["rye.execute.tool.*.[rw]*e"], ("execute", "tool", "rye/file-system/write"), True),
        (["rye.execute.tool.[ab"], ("execute", "tool", "a"), False),
        (["rye.execute.tool.a"], ("execute", "tool", "*"), False),
        (["rye.execute.tool.%2A"], ("execute", "tool", "*"), True),
    ],
)
def test_matcher(grants: list[str], request_: tuple[Primary, str, str], allowed: bool) -> None:
    assert Grants.of(grants).allows(*request_) is allowed


@pytest.mark.parametrize(
    ("child", "parent", "left"),
    [
        ([f"{FILES}.read"], [f"{FILES}.*"], [f"{FILES}.read"]),
        ([f"{FILES}.*"], [f"{FILES}.read"], [f"{FILES}.read"]),
        (["rye.*"], [f"{FILES}.*", "rye.sign.*"], [f"{FILES}.*", "rye.sign.*"]),
        ([f"{FILES}.*"], ["rye.sign.*"], []),
        ([f"{FILES}.*"], [f"{FILES}"], [f"{FILES}"]),
        # Only overlapping: too little rather than too much.
        (["rye.execute.tool.*.write"], [f"{FILES}.*"], []),
        (["rye.execute.tool.a.*"], ["rye.execute.tool.a.*b*"], ["rye.execute.tool.a.*b*"]),
        # A wildcard for one character is not wide enough for a star.
        (["rye.execute.tool.a.*"], ["rye.execute.tool.a.?"], ["rye.execute.tool.a.?"]),
        (["rye.execute.tool.a*"], ["rye.execute.tool.a[!b]"], ["rye.execute.tool.a[!b]"]),
        (["rye.execute.tool.?"], ["rye.execute.tool.[ab]"], []),
        (["rye.execute.tool.[ab]"], ["rye.execute.tool.[ab]", "rye.sign.*"], ["rye.execute.tool.[ab]"]),
    ],
)
def test_narrow(child: list[str], parent: list[str], left: list[str]) -> None:
    assert Grants.of(child).narrow(Grants.of(parent)) == Grants.of(left)


segments = st.text(st.sampled_from("ab.*?[]!-"), min_size=1, max_size=5)
patterns = st.lists(segments, min_size=1, max_size=3).map(lambda parts: "rye.execute.tool." + ".".join(parts))


@given(st.lists(patterns, max_size=3), st.lists(patterns, max_size=3), st.text(st.sampled_from("ab."), max_size=6))
def test_narrowed_grants_never_exceed_either_side(child: list[str], parent: list[str], tail: str) -> None:
    needed = f"rye.execute.tool.{tail}"
    mine, theirs = Grants.of(child), Grants.of(parent)
    if mine.narrow(theirs).covers(needed):
        assert mine.covers(needed)
        assert theirs.covers(needed)


@settings(deadline=None)
@given(st.lists(patterns, max_size=6), st.text(st.sampled_from("ab."), max_size=6))
def test_a_lookup_agrees_with_trying_every_pattern(written: list[str], tail: str) -> None:
    grants, needed = Grants.of(written), f"rye.execute.tool.{tail}"
    tried = any(
        glob(pattern, needed) or (pattern.endswith(".*") and glob(pattern[:-2], needed)) for pattern in grants.patterns
    )
    assert grants.covers(needed) == tried


def test_grants_are_equal_by_their_patterns() -> None:
    one, two = Grants.of(["rye.a.*", "rye.b", "rye.*.c"]), Grants.of(["rye.*.c", "rye.b", "rye.a.*"])
    assert (one, hash(one)) == (two, hash(two))
    assert repr(one).startswith("Grants(patterns=frozenset({") and "_exact" not in repr(one)


names = st.text(min_size=1, max_size=8)


@given(names, names, names, names)
def test_no_two_tools_share_a_capability(server: str, tool: str, other_server: str, other_tool: str) -> None:
    one = capability("execute", "tool", mcp_tool(server, tool))
    two = capability("execute", "tool", mcp_tool(other_server, other_tool))
    assert (one == two) == ((server, tool) == (other_server, other_tool))
    assert "*" not in one
    assert one.count(".") == 5


@given(names, names)
def test_a_granted_tool_grants_no_other(tool: str, other: str) -> None:
    granted = Grants.of([grant_for(python_tool(tool))])
    assert granted.covers(capability("execute", "tool", python_tool(other))) == (tool == other)


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        ("time", "get_current-time", "mcp/time/get_current-time"),
        ("a.b", "c", "mcp/a%2Eb/c"),
        ("a", "b/c*", "mcp/a/b%2Fc%2A"),
        ("a", "50%", "mcp/a/50%25"),
        ("ä", "x", "mcp/%C3%A4/x"),
    ],
)
def test_mcp_ids(server: str, tool: str, expected: str) -> None:
    assert mcp_tool(server, tool) == expected
    # An id that is written in a document is the id, not something to escape again.
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    ("name", "grant"),
    [
        ("shell", "rye.execute.tool.rye.bash"),
        ("file__write", f"{FILES}.write"),
        ("rye/file-system/*", f"{FILES}.*"),
        ("rye.bash", "rye.execute.tool.rye.bash"),
        ("mcp/time/*", "rye.execute.tool.mcp.time.*"),
        ("rye.fetch.knowledge.*", "rye.fetch.knowledge.*"),
        ("*", "*"),
        ("a*b", "rye.execute.tool.a%2Ab"),
    ],
)
def test_what_allow_means(name: str, grant: str) -> None:
    assert grant_for(name) == grant


@pytest.mark.parametrize(
    ("grants", "item_id", "needed", "included"),
    [
        (["rye.execute.tool.rye.*"], "rye/*", "rye.execute.tool.rye.*", True),
        (["rye.execute.tool.rye.file-system.*"], "rye/*", "rye.execute.tool.rye.*", False),
        (["rye.execute.tool.rye.file-system.*"], "rye/file-system/w*", "rye.execute.tool.rye.file-system.w*", True),
        (["rye.execute.tool.*"], "a b.c/*", "rye.execute.tool.a%20b%2Ec.*", True),
        (["rye.execute.tool.rye.bash"], "*", "rye.execute.tool.*", False),
    ],
)
def test_a_pattern_is_included_as_a_whole(grants: list[str], item_id: str, needed: str, included: bool) -> None:
    assert pattern_for("execute", "tool", item_id) == needed
    assert Grants.of(grants).includes(needed) is included


def test_denied_says_what_is_missing_and_how_to_grant_it() -> None:
    with pytest.raises(Denied) as refused:
        Grants.of(["rye.sign.*"]).require("execute", "tool", "mcp/time/now")
    message = str(refused.value)
    assert message.startswith("permission denied: mcp/time/now needs the capability rye.execute.tool.mcp.time.now;")
    assert "--allow mcp/time/now" in message
    with pytest.raises(Denied, match=r"shell \(rye/bash\) .*no capabilities"):
        Grants().require("execute", "tool", "rye/bash")


def conformance() -> list[Any]:
    import yaml

    files = sorted(CASES.glob("permission*.yaml"))
    if not files:
        return [pytest.param(None, marks=pytest.mark.skip(reason="the shared conformance cases are not here"))]
    return [pytest.param(case, id=case["id"]) for file in files for case in yaml.safe_load(file.read_text())]


@pytest.mark.parametrize("case", conformance())
def test_conformance(case: dict[str, Any]) -> None:
    given_, expect = case["given"], case["expect"]
    grants = Grants.of(given_["capabilities"])
    if "parent_capabilities" in given_:
        grants = grants.narrow(Grants.of(given_["parent_capabilities"]))
    if "effective_capabilities" in expect:
        assert grants == Grants.of(expect["effective_capabilities"])
    wanted = given_["request"]
    try:
        grants.require(wanted["primary"], wanted["item_type"], wanted["item_id"])
    except Denied as error:
        assert expect["decision"] == "deny"
        for part in expect.get("error_contains", []):
            assert part in str(error)
    else:
        assert expect["decision"] == "allow"


def test_narrowed_grants_name_the_place_of_their_own_declaration() -> None:
    parent = Grants.of(["rye.execute.tool.*"])
    here, there = (Grants.of(["rye.execute.tool.x"], place) for place in ("a.md:1", "b.md:2"))
    assert (here.narrow(parent).declared, there.narrow(parent).declared) == ("a.md:1", "b.md:2")


@pytest.mark.parametrize(
    ("patterns", "more"),
    [
        (["rye.execute.tool.spawn_thread"], True),
        (["rye.execute.tool.rye.agent.threads.*", "rye.fetch.*"], True),
        (["rye.execute.tool.spawn_thread", "rye.execute.directive.a"], False),
        (["rye.execute.tool.spawn_thread", "rye.execute.d*"], False),
        (["rye.execute.*"], False),
        (["rye.execute.tool.ask"], False),
    ],
)
def test_the_tool_that_starts_threads_alone_means_every_directive(patterns: list[str], more: bool) -> None:
    """Ruling 19 of directives."""
    grants = Grants.of(patterns)
    assert grants.with_directives().patterns - grants.patterns == ({"rye.execute.directive.*"} if more else set())
