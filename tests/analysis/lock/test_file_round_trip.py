"""Locks as files: written sorted, read strictly, and never trusted half."""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.analysis.lock.file import (
    CLASSES,
    HEADER,
    TIERS,
    Lock,
    LockedCapability,
    LockedDocument,
    LockedTool,
    document_lines,
    fitting,
    kept_entries,
    shortened,
    written,
)
from quire.analysis.lock.plain_read import excerpt, read_plain
from quire.analysis.lock.read import LONGEST, LockReading, read_lock
from quire.analysis.lock.strict_read import read_strictly
from quire.plan.built_in_tools import EffectClass
from quire.source import Source
from quire.trust.risk import Tier

PLAN = f"sha256:{'9f3c' * 16}"
REVIEW = LockedDocument(
    PLAN,
    (
        LockedCapability("rye.execute.tool.mcp.tickets.create", "elevated", "write", (), ("4", "report 2")),
        LockedCapability(
            "rye.execute.tool.rye.file-system.write", "write", "idempotent", ("path=a/*", "path=b"), ("6",)
        ),
        LockedCapability("odd.*"),
    ),
    ("gone",),
    ("anthropic:claude-sonnet-4-5", "default"),
    ("tickets",),
    ("TICKETS_TOKEN",),
    {"model_calls": "6·|readers| + 30", "tool_calls": "∞", "questions": "1", "money": "0.29·|readers| + 0.40"},
    {"4 tickets/create": "2 confirm, shown: summary"},
    ("1 http__get → 3 model (no tools)",),
    ('TA101 because "it is: fine"',),
)  # fmt: skip
LOCK = Lock(
    {"pipelines/review.yaml": REVIEW, "b.playbook.md": LockedDocument(PLAN), "many.yaml#one": LockedDocument(PLAN)},
    {"tickets/create": LockedTool(PLAN, "write"), "tickets/list": LockedTool("not asked")},
    {"anthropic:claude-sonnet-4-5": "3 15 200000"},
    "genai-prices 0.0.62",
    {"readers": "20"},
)
TEXT = f"""{HEADER}
quire: 1
assume:
  readers: 20
prices:
  source: genai-prices 0.0.62
  models:
    anthropic:claude-sonnet-4-5: 3 15 200000
documents:
  b.playbook.md:
    plan: {PLAN}
  many.yaml#one:
    plan: {PLAN}
  pipelines/review.yaml:
    plan: {PLAN}
    may:
      - odd.* tier=none class=unknown
      - rye.execute.tool.mcp.tickets.create tier=elevated class=write steps=4, report 2
      - rye.execute.tool.rye.file-system.write tier=write class=idempotent path=a/* path=b steps=6
    unknown:
      - gone
    asks:
      models:
        - anthropic:claude-sonnet-4-5
        - default
      servers:
        - tickets
      variables:
        - TICKETS_TOKEN
    most:
      model_calls: 6·|readers| + 30
      tool_calls: ∞
      questions: 1
      money: 0.29·|readers| + 0.40
    gates:
      "4 tickets/create": "2 confirm, shown: summary"
    flows:
      - 1 http__get → 3 model (no tools)
    allows:
      - "TA101 because \\"it is: fine\\""
tools:
  tickets/create: {PLAN} class=write
  tickets/list: not asked class=unknown
"""


def reading(text: str) -> LockReading:
    return read_lock(Source.of(text, "quire.lock"))


def test_written_sorted_one_fact_a_line() -> None:
    assert written(LOCK) == TEXT


def test_the_order_of_facts_does_not_matter() -> None:
    keys = list(LOCK.documents)
    random.Random(1).shuffle(keys)
    assert written(Lock({key: LOCK.documents[key] for key in keys})) == written(Lock(LOCK.documents))


def test_read_as_written() -> None:
    found = reading(TEXT)
    assert found.diagnostics == () and found.lock is not None
    assert written(found.lock) == TEXT
    assert found.lock.documents["pipelines/review.yaml"].may[1].steps == ("4", "report 2")


def test_what_is_as_it_was_written_is_read_without_yaml() -> None:
    assert read_plain(TEXT) == reading(TEXT).lock is not None


def test_all_tiers_and_classes_can_be_read() -> None:
    assert ("none", *Tier) == TIERS
    assert (*get_args(EffectClass), "unknown") == CLASSES


def test_a_signature_line_may_stand_above() -> None:
    line = f"# rye:signed:2026-02-10T02:00:00Z:{'a' * 64}:c2ln:{'b' * 16}|lock:quire.lock\n"
    assert reading(line + TEXT).lock == reading(TEXT).lock


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("quire: 1\n", "quire: 2\n", 2, 'version "2"'),
        ("quire: 1\n", "", 2, "no line quire"),
        ("quire: 1\n", "quire: [1]\n", 2, "version a list"),
        ("documents:", "documents: &a", 9, "edited by hand"),
        ("  b.playbook.md:\n", "  b.playbook.md: &a\n", 10, "edited by hand"),
        ("      - gone\n", "      - gone # fine\n", 21, "edited by hand"),
        ("      - gone\n", "      - 'gone'\n", 21, "edited by hand"),
        ("      - gone\n", "      - gone\n      - gone\n", 22, "edited by hand"),
        ("      - gone\n", "      - !expr gone\n", 21, "edited by hand"),
        ("      - gone\n", "      - [gone]\n", 21, "a text stands here, not a list"),
        ("      - gone\n", "      gone: 1\n", 21, "a list stands here, not a mapping"),
        ("    unknown:\n", "    unknwn:\n", 20, '"unknwn" is not a key here'),
        ("tier=none class=unknown\n", "class=unknown\n", 17, "a line of may is"),
        ("tier=none class=unknown\n", "tier=none class=unknown path\n", 17, "a line of may is"),
        (f"plan: {PLAN}\n  many", "plan: sha256:12\n  many", 11, "64 digits"),
        (f"plan: {PLAN}\n  many", f"plan: {PLAN}\n    plan: {PLAN}\n  many", 12, "cannot be read"),
        ("class=write\n  tickets/list", "write\n  tickets/list", 42, "the pin of a tool"),
        ("readers: 20", "readers: many", 4, "an assumed size is a number"),
        ("quire: 1\n", "<<<<<<< HEAD\nquire: 1\n", 2, "a merge"),
        ("  many.yaml#one", "\n  many.yaml#one", 12, "edited by hand"),
        ("- gone", f"- {'x' * (LONGEST + 1)}", 21, "characters"),
        ("tool_calls: ∞", "tool_calls: many", 32, "a bound is a number, a formula or ∞"),
        ("tool_calls: ∞", "tool_calls: unpriced", 32, "a bound is a number, a formula or ∞"),
        ("money: 0.29·|readers| + 0.40", 'money: "1e99999999"', 34, "a bound is a number, a formula or ∞"),
        ("3 15 200000", "NaN 15 200000", 8, "a price is two numbers"),
        ("3 15 200000", "banana", 8, "a price is two numbers"),
        ("3 15 200000", f"3 15 {'9' * 30}", 8, "a price is two numbers"),
        ("tickets/list: not asked class=unknown", "tickets/list: not asked class=read", 43, "no tool has the digest"),
        (f"tickets/create: {PLAN} class=write", "tickets/create: sha256:12 class=write", 42, "no tool has the digest"),
        (f"{PLAN} class=write\n", f"{PLAN} class=harmless\n", 42, '"harmless" is not a class; known: read, idempotent'),
        ("tier=none class=unknown\n", "tier=godlike class=unknown\n", 17,
         '"godlike" is not a tier; known: none, safe, write, elevated, unrestricted'),
        ("tier=none class=unknown\n", "tier=none class=harmless\n", 17,
         '"harmless" is not a class; known: read, idempotent, write, unknown'),
    ],
)  # fmt: skip
def test_a_lock_that_is_wrong_is_not_read_at_all(old: str, new: str, line: int, message: str) -> None:
    assert old in TEXT
    found = reading(TEXT.replace(old, new, 1))
    assert found.lock is None
    assert message in found.diagnostics[0].message
    assert found.source.position(found.diagnostics[0].span.start).line == line


@pytest.mark.parametrize("text", ["", "\n", "- 1\n", "a", "quire: 1\n---\nquire: 1\n", "quire: 1\n" * 2])
def test_texts_that_are_no_lock(text: str) -> None:
    assert reading(text).lock is None and reading(text).diagnostics


def test_a_bomb_of_aliases_is_refused() -> None:
    text = "quire: 1\na0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 8)}]\n" for number in range(1, 12)
    )
    assert reading(text).lock is None


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
_words = st.text("ab%=*.é\u202e", min_size=1, max_size=8)


@given(
    st.builds(
        LockedDocument,
        plan=st.just(PLAN),
        may=st.lists(
            st.builds(LockedCapability, capability=_words, tier=st.sampled_from(["", "write"]), steps=st.just(("1",))),
            max_size=2,
            unique_by=lambda one: one.capability,
        ).map(tuple),
        flows=st.lists(_texts, max_size=3).map(tuple),
        allows=st.lists(_texts, max_size=3).map(tuple),
        gates=st.dictionaries(_texts, _texts, max_size=3),
        models=st.lists(_texts, max_size=3).map(tuple),
    ),
    _texts,
)
@settings(max_examples=depth(60, 2000), deadline=None)
def test_whatever_a_fact_says_it_is_read_as_it_was_written(document: LockedDocument, key: str) -> None:
    text = written(Lock({key: document}))
    found = reading(text)
    assert found.diagnostics == () and found.lock is not None
    assert found == read_strictly(Source.of(text, "quire.lock"))
    assert written(found.lock) == text
    assert dict(found.lock.documents[key].gates) == dict(document.gates)
    assert set(found.lock.documents[key].flows) == set(document.flows)


@given(st.text(max_size=200), st.integers(0, len(TEXT)))
@settings(max_examples=depth(100, 3000), deadline=None)
def test_any_text_is_a_lock_or_a_finding(inserted: str, at: int) -> None:
    text = TEXT[:at] + inserted + TEXT[at:]
    found = reading(text)
    assert (found.lock is None) == bool(found.diagnostics)
    assert found == read_strictly(Source.of(text, "quire.lock"))


def _move_a_line(lines: list[str], chance: random.Random) -> None:
    """Swap, repeat, remove or indent a line."""
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines[at], lines[other] = lines[other], lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            del lines[at]
        case 3:
            lines[at] = chance.choice(["  ", "", " "]) + lines[at].removeprefix("  ")


def test_a_plain_reading_is_written_as_the_same_text() -> None:
    """A text that differs in the order, the indentation or the writing of a line is left to the strict reader."""
    chance, changed, plain = random.Random(7), 0, 0
    for _ in range(depth(3_000, 60_000)):
        lines = TEXT.splitlines(keepends=True)
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(lines))
            match chance.randrange(6):
                case 0 | 1 | 2 | 3:
                    _move_a_line(lines, chance)
                case 4:
                    lines[at] = chance.choice(
                        ['  x: ""\n', "    may:\n", "  - a\n", "tools: {}\n", "documents: {}\n", "\n"]
                    )
                case 5:
                    place = chance.randrange(len(lines[at]))
                    letter = chance.choice("\"':#- ,0a\u2028")
                    lines[at] = lines[at][:place] + letter + lines[at][place + chance.randint(0, 1) :]
        text = "".join(lines)
        found = read_plain(text)
        changed += text != TEXT
        plain += found is not None
        assert found is None or written(found) == text, text
    assert changed > 2_000
    assert plain > 100


def named(text: str, *keys: str) -> LockReading:
    return read_lock(Source.of(text, "quire.lock"), frozenset(keys))


@pytest.mark.parametrize("key", [*LOCK.documents, "many.yaml", "gone.yaml"])
@pytest.mark.parametrize("text", [TEXT, TEXT.partition("tools:")[0]])
def test_the_entry_of_one_document_is_read_alone(text: str, key: str) -> None:
    whole, found = reading(text).lock, named(text, key).lock
    assert whole is not None and found is not None
    mine = {one: entry for one, entry in whole.documents.items() if one == key or one.startswith(f"{key}#")}
    assert found == Lock(mine, whole.tools, whole.prices, whole.price_source, whole.assumed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("      - gone\n", "      - gone # fine\n"),
        ("tool_calls: ∞", "tool_calls: many"),
        ("readers: 20", "readers: many"),
        (f"tickets/create: {PLAN} class=write", "tickets/create: sha256:12 class=write"),
        ("  b.playbook.md:\n", "  b.playbook.md: &a\n"),
        ("  b.playbook.md:\n", f"  a.md:\n    plan: {PLAN}\n  a.md:\n"),
        ("  b.playbook.md:\n", f"  z.md:\n    plan: {PLAN}\n  b.playbook.md:\n"),
        ("  b.playbook.md:\n", "<<<<<<< HEAD\n  b.playbook.md:\n"),
        ("  b.playbook.md:\n", "   - a\n  b.playbook.md:\n"),
        ("  b.playbook.md:\n", "    b.playbook.md:\n"),
        ("tools:\n", "tools:\ndocuments: {}\ntools:\n"),
        ("quire: 1\n", "quire: 2\n"),
    ],
)
def test_a_lock_that_is_wrong_around_an_entry_is_not_read_for_it(old: str, new: str) -> None:
    assert old in TEXT
    found = named(TEXT.replace(old, new, 1), "pipelines/review.yaml")
    assert found.lock is None and found == reading(TEXT.replace(old, new, 1))


def test_facts_of_other_documents_are_not_looked_into() -> None:
    """Each document is held to its own lines. A check of all documents finds the others."""
    text = TEXT.replace("      - gone\n", "      - gone # fine\n")
    assert reading(text).lock is None
    assert named(text, "b.playbook.md") == LockReading(Source.of(text, "quire.lock"), named(TEXT, "b.playbook.md").lock)


def test_an_entry_that_is_read_alone_is_the_one_in_the_text() -> None:
    chance, compared = random.Random(3), 0
    for _ in range(depth(2_000, 40_000)):
        lines = TEXT.splitlines(keepends=True)
        _move_a_line(lines, chance)
        text = "".join(lines)
        for key in LOCK.documents:
            part = excerpt(text, key.__eq__)
            found = read_plain(part) if part is not None else None
            if found is None or key not in found.documents:
                continue
            compared += 1
            entry = "".join(f"    {line}\n" for line in document_lines(found.documents[key]))
            assert f"\n  {key}:\n{entry}" in text and text.count(f"\n  {key}:\n") == 1, text
    assert compared > 500


def test_a_fact_of_any_length_is_written_so_that_it_can_be_read() -> None:
    steps = tuple(map(str, range(3_000)))
    details = tuple(f"path=out/{number:04}" for number in range(900))
    long = LockedCapability("rye." + "x" * 9_000, "write", "write", (*details, f"path={'y' * 9_000}"), steps)
    parts = tuple(fitting(long))
    found = reading(written(Lock({"a": LockedDocument(PLAN, parts)})))
    assert found.diagnostics == () and found.lock is not None
    assert set(found.lock.documents["a"].may) == set(parts)
    assert {detail for one in parts for detail in one.details} >= set(details)
    assert all(one.steps[:2] == ("0", "1") and one.steps[-1] == "…" for one in parts)


def test_long_texts_that_differ_at_their_ends_stay_different() -> None:
    one, other = ("z" * 20_000 + end for end in "ab")
    assert shortened(one) != shortened(other) and len(shortened(one)) < LONGEST
    assert shortened("short") == "short"


def test_updating_some_documents_keeps_the_others() -> None:
    new = Lock({"b.playbook.md": LockedDocument(PLAN, models=("x",)), "other": LockedDocument(PLAN)})
    found = kept_entries(LOCK, new, ["b.playbook.md", "gone.yaml"])
    assert [*found.documents] == ["pipelines/review.yaml", "many.yaml#one", "b.playbook.md"]
    assert found.documents["b.playbook.md"].models == ("x",) and found.tools == LOCK.tools
