"""Two locks side by side: wider, narrower or only different, with an example of what is new."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quire.analysis.lock.compare import Change, compare, compare_document, is_higher
from quire.analysis.lock.file import Lock, LockedCapability, LockedDocument, LockedTool

DOCUMENT = LockedDocument("sha256:1")
TICKETS = "rye.execute.tool.mcp.tickets"
SEND = "rye.execute.tool.rye.http.send"
SHELL = "rye.execute.tool.rye.bash"
WRITE = "rye.execute.tool.rye.file-system.write"


def needs(capability: str, *details: str, tier: str = "elevated", effect: str = "write") -> LockedDocument:
    return replace(DOCUMENT, may=(LockedCapability(capability, tier, effect, details, ("1",)),))


def changes(old: LockedDocument, new: LockedDocument, *tools: str) -> list[tuple[str, str, str]]:
    return [(one.code.id, one.direction, one.example or one.new or one.old)
            for one in compare_document("a", old, new, tools)]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (needs(f"{TICKETS}.create"), needs(f"{TICKETS}.create"), []),
        (DOCUMENT, needs(f"{TICKETS}.create"), [("LK103", "wider", "elevated, write")]),
        (needs(f"{TICKETS}.create"), DOCUMENT, [("LK102", "narrower", "elevated, write")]),
        (needs(f"{TICKETS}.*"), needs(f"{TICKETS}.create"), [("LK102", "narrower", "elevated, write")]),
        (needs(f"{TICKETS}.create"), needs(f"{TICKETS}.*"), [("LK103", "wider", f"{TICKETS}.delete")]),
        (needs(WRITE, "path=a/*"), needs(WRITE, "path=a/b"), [("LK102", "narrower", "elevated, write, path=a/*")]),
        (needs(WRITE, "path=a/b"), needs(WRITE, "path=a/*"),
         [("LK103", "wider", "path=a/anything")]),
        (needs(WRITE, "path=a", "path=b"), needs(WRITE, "path=b"), [("LK102", "narrower", "elevated, write, path=a")]),
        (needs(WRITE, "path=a"), needs(WRITE, "path=a", "path=b"), [("LK103", "wider", "path=b")]),
        (needs(SHELL, "command=ls", "env=A"), needs(SHELL, "command=ls"), [("LK103", "wider", "env=anything")]),
        (needs(SHELL, "command=ls", "env="), needs(SHELL, "command=ls", "env=A"), [("LK103", "wider", "env=A")]),
        (needs(SHELL, "command=ls", "env=A"), needs(SHELL, "command=ls", "env=*", "env=A"),
         [("LK103", "wider", "env=anything")]),
        (needs(SHELL, "command=ls"), needs(SHELL, "command=ls", "env=A"),
         [("LK102", "narrower", "elevated, write, env=*")]),
        (needs(SHELL, "command=ls", "env=A"), needs(SHELL, "command=ls", "env="),
         [("LK102", "narrower", "elevated, write, env=A")]),
        (needs(SHELL, "command=ls"), needs(SHELL, "command=ls", "env=*"), []),
        (DOCUMENT, needs(SHELL, "command=ls"), [("LK103", "wider", "command=ls")]),
        (needs(SEND, "host=a", "method=POST"), needs(SEND, "host=a", "method=DELETE"),
         [("LK103", "wider", "method=DELETE"), ("LK102", "narrower", "elevated, write, method=POST")]),
        (needs(SEND, "host=a", "method=POST"), needs(SEND, "host=a", "method=*"),
         [("LK103", "wider", "method=anything")]),
        (needs(SEND, "host=a"), needs(SEND, "host=a", "method=POST"), []),
        (needs(SEND, "host=a", "method=POST"), needs(SEND, "host=http://a", "method=POST"),
         [("LK103", "wider", "host=http://a")]),
        (needs(SEND, "host=http://a", "method=POST"), needs(SEND, "host=a", "method=POST"),
         [("LK102", "narrower", "elevated, write, host=http://a")]),
        (needs("rye.execute.tool.*"), needs(WRITE, "path=b"), [("LK102", "narrower", "elevated, write")]),
        (needs(WRITE, "path=*"), needs("rye.execute.tool.*"), [("LK103", "wider", f"{TICKETS}.create")]),
        (needs("rye.execute.*"), needs("rye.execute"), [("LK102", "narrower", "elevated, write")]),
        (needs(WRITE, effect="read"), needs(WRITE), [("LK103", "wider", "elevated, write")]),
        (needs(WRITE, effect="unknown"), needs(WRITE), [("LK102", "other", "elevated, write")]),
        (needs(WRITE, tier="write"), needs(WRITE), [("LK102", "other", "elevated, write")]),
        # newcomer M7: another name of the same tool, in a lock of an older version, is not another capability.
        (needs("rye.execute.tool.file__write"), needs(WRITE), []),
        (needs("rye.execute.tool.rye.file-system.fs_write", "path=a"), needs(WRITE, "path=a"), []),
    ],
)  # fmt: skip
def test_capabilities(old: LockedDocument, new: LockedDocument, found: list[tuple[str, str, str]]) -> None:
    assert changes(old, new, "tickets/create", "tickets/delete") == found


@pytest.mark.parametrize(
    ("field", "old", "new", "code", "direction"),
    [
        ("plan", "sha256:1", "sha256:2", "LK102", "other"),
        ("unknown", (), ("x",), "LK103", "wider"),
        ("models", (), ("x",), "LK103", "wider"),
        ("servers", ("x",), (), "LK102", "narrower"),
        ("variables", ("A",), ("A", "B"), "LK103", "wider"),
        ("flows", (), ("1 → 2",), "LK106", "wider"),
        ("flows", ("1 → 2",), (), "LK102", "narrower"),
        ("allows", (), ("TA101",), "LK102", "other"),
        ("most", {"model_calls": "3"}, {"model_calls": "4"}, "LK104", "wider"),
        ("most", {"model_calls": "4"}, {"model_calls": "3"}, "LK102", "narrower"),
        ("most", {}, {"model_calls": "1"}, "LK104", "wider"),
        ("gates", {"4 x": "2 confirm"}, {"4 x": "none"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm"}, {"4 x": "2 input"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm, shown: a"}, {"4 x": "2 confirm"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm"}, {"5 x": "none"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm"}, {"5 x": "3 confirm", "6 x": "none"}, "LK105", "wider"),
        ("gates", {"4 x": "none"}, {"4 x": "none", "6 x": "none"}, "LK105", "wider"),
        ("gates", {"4 x": "none"}, {"4 x": "2 confirm"}, "LK102", "narrower"),
        ("gates", {"4 x": "2 confirm"}, {}, "LK102", "narrower"),
        ("gates", {}, {"4 x": "none"}, "LK105", "wider"),
        ("gates", {}, {"4 x": "2 confirm"}, "LK102", "other"),
        ("gates", {"4 x": "2 confirm, shown: a"}, {"4 x": "2 confirm, opens unattended, shown: a"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm, opens unattended"}, {"4 x": "2 confirm"}, "LK102", "narrower"),
        ("gates", {"4 x": "2 confirm, stays shut unattended"},
         {"4 x": "2 confirm, opens unattended without a default"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm, opens unattended without a default"},
         {"4 x": "2 confirm, stays shut unattended"}, "LK102", "narrower"),
        ("gates", {"4 x": "none"}, {"4 x": "2 confirm, opens unattended"}, "LK102", "narrower"),
        ("gates", {"4 x": "2 confirm, opens unattended"}, {"4 x": "none"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm, opens unattended, shown: a"}, {"4 x": "2 confirm"}, "LK105", "wider"),
        ("gates", {}, {"4 x": "2 confirm, opens unattended"}, "LK105", "wider"),
        ("gates", {"4 x": "2 confirm"}, {"4 x": "2 confirm", "5 x": "2 confirm, opens unattended"}, "LK105", "wider"),
        ("flows", ("1 a → 2 shell",), ("1 a → 2 shell", "1 a → 3 shell"), "LK106", "wider"),
        ("flows", ("1 a → 2 shell",), ("2 a → 3 shell", "2 a → 4 shell"), "LK106", "wider"),
        ("flows", ("1 a → 2 shell", "1 a → 3 shell"), ("1 a → 2 shell",), "LK102", "narrower"),
        ("flows", ("1 loop → a → 2 shell",), ("1.do.2 http__get → a → 2 shell",), "LK102", "narrower"),
        ("flows", ("1 loop → a → 2 shell",), (), "LK102", "narrower"),
    ],
)  # fmt: skip
def test_other_facts(field: str, old: object, new: object, code: str, direction: str) -> None:
    before, now = replace(DOCUMENT, **{field: old}), replace(DOCUMENT, **{field: new})
    assert [(one.code.id, one.direction) for one in compare_document("a", before, now)] == [(code, direction)]


def test_inserting_a_step_changes_no_gate_and_no_flow() -> None:
    before = replace(
        DOCUMENT,
        gates={"1.a › 4.do x": "2 confirm, shown: a"},
        flows=("1 http__get → page → 3 model", "private: 1 a → 2 b"),
    )
    now = replace(
        DOCUMENT,
        gates={"2 › 5 x": "3 › 1 confirm, shown: a"},
        flows=("2 http__get → page → 4 › 1 model", "private: 2 a → 9 b"),
    )
    assert compare_document("a", before, now) == []


@pytest.mark.parametrize("note", ["opens unattended without a default", "stays shut unattended"])
def test_a_lock_from_before_there_were_notes_is_not_stale(note: str) -> None:
    before = replace(DOCUMENT, gates={"4 x": "2 confirm, shown: a", "6 y": "none"})
    now = replace(DOCUMENT, gates={"4 x": f"2 confirm, {note}, shown: a", "6 y": "none"})
    assert compare_document("a", before, now) == []


def test_a_shown_value_is_not_taken_for_a_note() -> None:
    before = replace(DOCUMENT, gates={"4 x": "2 confirm, shown: a, opens unattended"})
    now = replace(DOCUMENT, gates={"4 x": "2 confirm, shown: a"})
    assert [one.direction for one in compare_document("a", before, now)] == ["wider"]


def test_a_gate_that_moves_to_another_effect_of_the_tool_is_found() -> None:
    before = replace(DOCUMENT, gates={"9 shell": "2 confirm, shown: a", "10 shell": "none"})
    now = replace(DOCUMENT, gates={"10 shell": "none", "11 shell": "3 confirm, shown: a"})
    assert [(one.name, one.direction, one.old, one.new) for one in compare_document("a", before, now)] == [
        ("10 shell", "wider", "2 confirm, shown: a", "none"),
        ("11 shell", "narrower", "none", "3 confirm, shown: a"),
    ]


def test_another_class_under_the_same_digest_is_a_changed_tool() -> None:
    old, new = (Lock(tools={"t/a": LockedTool("sha256:1", effect)}) for effect in ("write", "read"))
    (change,) = compare(old, new)
    assert (change.direction, change.code.id) == ("wider", "LK107")


def test_variables_count_whichever_line_names_them() -> None:
    parts = [LockedCapability(SHELL, "elevated", "write", details) for details in (("command=ls",), ("env=A",))]
    before, now = (replace(DOCUMENT, may=tuple(several)) for several in (parts, parts[:1]))
    assert [one.direction for one in compare_document("a", before, now)] == ["wider"]


def test_steps_do_not_count() -> None:
    one = replace(DOCUMENT, may=(LockedCapability(WRITE, "write", "write", ("path=a",), ("1",)),))
    other = replace(DOCUMENT, may=(LockedCapability(WRITE, "write", "write", ("path=a",), ("2", "3")),))
    assert compare_document("a", one, other) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "higher"),
    [
        ("model_calls", "30", "30", False),
        ("model_calls", "30", "31", True),
        ("model_calls", "1,200", "1,199", False),
        ("model_calls", "30", "6·|readers| + 30", True),
        ("model_calls", "6·|readers| + 30", "7·|readers| + 30", True),
        ("model_calls", "6·|readers| + 30", "5·|readers| + 31", None),
        ("model_calls", "∞", "6·|readers|", False),
        ("model_calls", "6·|readers|", "∞", True),
        ("model_calls", "6", "some", None),
        ("money", "0.29·|readers| + 0.40", "0.30·|readers| + 0.40", True),
        ("money", "0.29·|readers| + 0.40", "0.29·|readers| + 0.39", False),
        ("money", "0.29", "unpriced", None),
        ("money", "unpriced", "0.29", None),
        ("money", "unpriced", "", False),
        ("money", "0.0000000000001", "1", None),
        ("money", "1.2.3", "1", None),
        ("money", "0.5·|readers|", "|readers|", True),
        ("money", "2·|readers|", "|readers|", False),
        ("money", "1e99999999", "1", None),
    ],
)
def test_bounds_are_compared_by_their_coefficients(name: str, old: str, new: str, higher: bool | None) -> None:
    assert is_higher(name, old, new) is higher


def test_formulas_of_many_terms_are_compared_too() -> None:
    sizes = [f"|a{at}|" for at in range(200)]
    before, now = " + ".join(sizes), " + ".join(["9·|a0|", *sizes[1:]])
    assert is_higher("model_calls", before, now) is True
    assert is_higher("model_calls", now, before) is False


def test_a_bound_that_cannot_be_compared_counts_as_higher() -> None:
    before, now = (replace(DOCUMENT, most={"money": text}) for text in ("0.29", "unpriced"))
    found = compare_document("a", before, now)
    assert [(one.direction, one.decided) for one in found] == [("wider", False)]


def test_documents_tools_and_prices() -> None:
    old = Lock(
        {"gone.yaml": DOCUMENT, "same.yaml": DOCUMENT},
        {"t/a": LockedTool("sha256:1", "read"), "t/b": LockedTool("not asked"), "t/gone": LockedTool("sha256:1")},
        {"m": "3 15 200000", "n": "3 15", "o": "3 15"},
    )
    new = Lock(
        {"same.yaml": DOCUMENT, "new.yaml": needs(WRITE)},
        {"t/a": LockedTool("sha256:2", "read"), "t/b": LockedTool("sha256:1"), "t/c": LockedTool("sha256:3")},
        {"m": "3 16 200000", "n": "2 15", "p": "9 9"},
    )
    assert [(one.document, one.kind, one.direction, one.name, one.code.id) for one in compare(old, new)] == [
        ("gone.yaml", "document", "narrower", "gone.yaml", "LK102"),
        ("new.yaml", "document", "wider", "new.yaml", "LK101"),
        ("new.yaml", "may", "wider", WRITE, "LK103"),
        ("", "tool", "wider", "t/a", "LK107"),
        ("", "tool", "other", "t/b", "LK102"),
        ("", "tool", "other", "t/c", "LK102"),
        ("", "price", "wider", "m", "LK108"),
        ("", "price", "other", "n", "LK102"),
        ("", "price", "other", "p", "LK102"),
    ]
    assert compare(old, old) == ()


def test_a_real_tool_is_the_example() -> None:
    pins = {f"tickets/{name}": LockedTool("sha256:1") for name in ("create", "delete")}
    old, new = Lock({"a": needs(f"{TICKETS}.create")}, pins), Lock({"a": needs(f"{TICKETS}.*")}, pins)
    (change,) = compare(old, new)
    assert change == Change(
        "a", "may", "wider", f"{TICKETS}.*", "", "elevated, write", f"{TICKETS}.delete", True, ("1",)
    )


def test_what_is_given_up_counts_as_wider() -> None:
    hard = [f"*{letter}{'?' * 18}" for letter in "ab"]
    old = replace(DOCUMENT, may=tuple(LockedCapability(one) for one in [*hard, "*[ab]*"]))
    new = replace(DOCUMENT, may=(LockedCapability("*[ab]" + "?" * 18 + "*[ab]" + "?" * 18),))
    found = next(one for one in compare_document("a", old, new) if one.direction == "wider")
    assert found.code.id == "LK103"


RM, LS = "2 command=rm shell", "3 command=ls shell"
ASKED = "1 confirm"


@pytest.mark.parametrize(
    ("now", "details", "wider"),
    [
        ({"2 command=ls shell": ASKED, "3 command=rm shell": "none"}, ("command=ls", "command=rm"), True),
        ({"2 command=rm shell": ASKED, "3 command=rm shell": "none"}, ("command=rm",), True),
        ({"2 shell": "none"}, ("command=rm",), True),
        ({"2 shell": "none", "3 shell": "none"}, ("command=ls", "command=rm"), True),
        ({"3 command=rm shell": ASKED, "4 command=ls shell": "none"}, ("command=ls", "command=rm"), False),
        ({"2 shell": "none"}, ("command=ls",), False),
        ({"2 shell": ASKED}, ("command=rm",), False),
        ({"2 shell": ASKED, "3 shell": ASKED}, ("command=ls", "command=rm"), False),
    ],
)
def test_a_question_belongs_to_its_command(now: dict[str, str], details: tuple[str, ...], wider: bool) -> None:
    shell = LockedCapability("rye.execute.tool.rye.bash", "elevated", "write")
    old = replace(DOCUMENT, may=(replace(shell, details=("command=ls", "command=rm")),), gates={RM: ASKED, LS: "none"})
    new = replace(old, may=(replace(shell, details=details),), gates=now)
    found = [one for one in compare_document("a", old, new) if one.kind == "gate" and one.direction == "wider"]
    assert bool(found) is wider


def test_a_lock_without_details_of_gates_is_not_another_one() -> None:
    old = replace(DOCUMENT, gates={"2 shell": ASKED, "3 shell": "none"})
    assert compare_document("a", old, replace(DOCUMENT, gates={RM: ASKED, LS: "none"})) == []


SENDING = LockedCapability("rye.execute.tool.rye.http.send", "elevated", "write")


def sends(*lines: tuple[str, ...]) -> LockedDocument:
    """Return a document with a line of `may` for each tuple of details."""
    return replace(
        DOCUMENT, may=tuple(replace(SENDING, details=one, steps=(str(at),)) for at, one in enumerate(lines, 1))
    )


APART = sends(("host=a.org", "method=PUT"), ("host=b.org", "host=c.org", "method=GET"))


@pytest.mark.parametrize(
    ("new", "example"),
    [
        (sends(("host=b.org", "method=PUT"), ("host=a.org", "host=c.org", "method=GET")), "host=b.org method=PUT"),
        (sends(("host=a.org", "host=b.org", "method=GET", "method=PUT")), "host=a.org method=GET"),
        (sends(("host=c.org", "method=GET")), ""),
        (sends(("host=c.org", "method=GET"), ("host=a.org", "method=PUT")), ""),
    ],
)
def test_a_method_belongs_to_its_host(new: LockedDocument, example: str) -> None:
    wider = [one for one in compare_document("a", APART, new) if one.direction == "wider"]
    assert [one.example for one in wider][:1] == ([example] if example else [])
