"""Cases are selected by words, tags, exact names and lines."""

from __future__ import annotations

import pickle

import pytest

from quire.errors import CannotStart
from quire.formats.test.syntax import Case, Setting, TestFile
from quire.source import Source, Span
from quire.testing.discovery import LONGEST_EXPRESSION, Selection, keyword, names_at


def case(name: str, *tags: str, at: int = 0) -> Case:
    return Case(name=name, span=Span(at, at + 1), setting=Setting(), expect=None, tags=tags)


@pytest.mark.parametrize(
    ("expression", "name", "meant"),
    [
        ("yes", "a YES polishes it", True),
        ("Yes Polishes", "a yes polishes it", True),
        ("polishes yes", "a yes polishes it", False),
        ("yes and it", "a yes polishes it", True),
        ("yes and no", "a yes polishes it", False),
        ("yes or no", "a no asks", True),
        ("not yes", "a no asks", True),
        ("not not yes", "a yes", True),
        ("not (yes or no)", "a maybe", True),
        ("not (yes or no)", "a no", False),
        ("a or b and c", "a", True),
        ("(a or b) and c", "a", False),
        ('"this and that"', "this and that", True),
        ('"this and that"', "that and this", False),
        ("'row 3'", "rows[row 3]", True),
        ("rows[row 3]", "rows[row 3]", True),
        ("it's", "it's fine", True),
        (" and ".join(["(d)"] * 60), "and d", True),
        ("android", "an android", True),
    ],
)
def test_an_expression_means_names(expression: str, name: str, meant: bool) -> None:
    assert keyword(expression).test(name.lower()) is meant


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "a part of a name is missing"),
        ("and", "a part of a name is missing"),
        ("yes and", "a part of a name is missing"),
        ("(yes", "a bracket is not closed"),
        ("yes)", ") is not expected"),
        ("yes not no", "not is not expected"),
        ('"yes', "a quote is not closed"),
        ('""', "a part of a name is missing"),
        ("x" * (LONGEST_EXPRESSION + 1), "longer than"),
        ("(" * LONGEST_EXPRESSION, "too many brackets"),
    ],
)
def test_a_wrong_expression_is_one_line(expression: str, reason: str) -> None:
    with pytest.raises(CannotStart, match=reason.replace(")", r"\)")) as caught:
        keyword(expression)
    assert "\n" not in str(caught.value)


def test_a_selection_goes_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(Selection(keyword("a and b"), ("slow",), frozenset({"x"}), (1, 2))))
    assert (sent.keyword.test("b a"), sent.tags, sent.names, sent.share) == (True, ("slow",), {"x"}, (1, 2))


def test_a_case_is_wanted_if_everything_holds() -> None:
    rows = case("rows", "slow", "nightly")
    assert Selection().wants(rows, "rows[row 1]")
    assert Selection(tags=("slow", "other")).wants(rows, "rows[row 1]")
    assert not Selection(tags=("other",)).wants(rows, "rows[row 1]")
    assert Selection(names=frozenset({"rows"})).wants(rows, "rows[row 1]")
    assert Selection(names=frozenset({"rows[row 2]"})).wants(rows, "rows[row 2]")
    assert not Selection(names=frozenset({"rows[row 2]"})).wants(rows, "rows[row 1]")
    assert not Selection(keyword("row 2"), tags=("slow",)).wants(rows, "rows[row 1]")
    assert Selection(keyword("tagline")).wants(rows, "rows[row 1]", "texts/tagline.test.yaml")


def test_shares_are_each_case_once() -> None:
    shares = [Selection(share=(mine, 3)) for mine in range(3)]
    assert [sum(one.takes(number) for one in shares) for number in range(10)] == [1] * 10


def test_a_line_means_the_case_around_it() -> None:
    source = Source.of("about: x\ncases:\n  - name: a\n    expect: {}\n  - name: b\n")
    at = [source.text.index("name: a"), source.text.index("name: b")]
    file = TestFile(document=None, cases=(case("a", at=at[0]), case("b", at=at[1])))
    assert [sorted(names_at(source, file, [line])) for line in range(1, 7)] == [
        ["a", "b"],
        ["a", "b"],
        ["a"],
        ["a"],
        ["b"],
        ["b"],
    ]
