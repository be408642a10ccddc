"""The functions of the Quire dialect: the arguments and the result of each, and examples that run as tests.

This table is the single source: the parser takes arity and lambdas from it, the checks of pipelines take kinds, and
`docs/reference/expressions.md` is generated from it. It imports nothing that computes.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quire.wording import nearest

Group = Literal["Texts", "Numbers", "Lists", "Maps", "Conversions"]


class Function(Struct, frozen=True):
    """One function."""

    name: str
    group: Group
    forms: tuple[str, ...]
    """How it is called, one text for each form."""
    meaning: str
    takes: tuple[str, ...]
    """Kinds of the arguments, joined with ` or `. The last one is repeated for further arguments."""
    gives: str
    """Kinds of the result, in the same way. `same` is the kind of the first argument."""
    examples: tuple[tuple[str, str], ...]
    """Expressions and their values as JSON. The context is the one of `docs/reference/expressions.md`."""
    least: int = 1
    most: int | None = 1
    """Number of arguments without a lambda. None is any number."""
    key: Literal["", "may", "must"] = ""
    """States if the second argument may or must be a lambda."""
    alone: str = ""
    """Kinds of an argument that is the only one, where they differ from `takes`."""

    @property
    def usage(self) -> str:
        return " or ".join(self.forms)

    @property
    def builds(self) -> bool:
        """True if the result may be a new list or map, which has to be measured."""
        return self.gives not in ("text", "number", "boolean") and self.name not in _GIVE_ELEMENTS

    def kinds(self, position: int, count: int) -> frozenset[str]:
        """Return the kinds that the argument at a position may have if `count` arguments are given."""
        if count == 1 and self.alone:
            return frozenset(self.alone.split(" or "))
        return frozenset(self.takes[min(position, len(self.takes) - 1)].split(" or "))


_GIVE_ELEMENTS = ("first", "last", "min", "max", "number")
_ANY = "any"

_FUNCTIONS = (
    Function(
        "text",
        "Conversions",
        ("text(value)",),
        "A text as it is, any other value as JSON: the same text as in a prompt.",
        (_ANY,),
        "text",
        (("'#' + text(ctx.n)", '"#7"'), ("text(true)", '"true"'), ("text(ctx.tags)", r'"[\"a\", \"b\"]"')),
    ),
    Function(
        "number",
        "Conversions",
        ("number(text)", "number(text, default)"),
        "The number that a text holds, in decimal digits; a number as it is. With a default, anything else gives that.",
        (_ANY, _ANY),
        "number",
        (("number('1.10')", "1.1"), ("number(' 12 ')", "12"), ("number('a dozen', 0)", "0")),
        most=2,
    ),
    Function(
        "json",
        "Conversions",
        ("json(value)", "json(value, indent)"),
        "The value as JSON, in one line or with each level indented by N spaces (1 to 8).",
        (_ANY, "number"),
        "text",
        (("json(ctx.review)", r'"{\"passed\": true, \"notes\": null}"'), ("json('a')", r'"\"a\""')),
        most=2,
    ),
    Function(
        "parse",
        "Conversions",
        ("parse(text)", "parse(text, default)"),
        "The value of a text that is JSON. With a default, anything else gives that.",
        (_ANY, _ANY),
        _ANY,
        (("parse('[1, {}]')", "[1, {}]"), ("parse('so so', null)", "null")),
        most=2,
    ),
    Function(
        "format",
        "Conversions",
        ("format(text, value, …)", "format(text, map)", "format(number, decimals)"),
        "The text with a value in place of each `{}`, or of each `{name}` from a map; braces are written `{{` and `}}`."
        " Or a number with N decimals (0 to 15).",
        ("text or number", _ANY),
        "text",
        (
            ("format('{} of {}', 2, ctx.n)", '"2 of 7"'),
            ("format('{name}: {review.passed}', ctx)", '"Ada: true"'),
            ("format(2.675, 2)", '"2.68"'),
        ),
        least=2,
        most=None,
    ),
    Function(
        "split",
        "Texts",
        ("split(text, separator)", "split(text)"),
        "The parts between separators; without one, the words between white space.",
        ("text", "text"),
        "list",
        (("split('a,b,,c', ',')", '["a", "b", "", "c"]'), ("split(' to  be ')", '["to", "be"]')),
        most=2,
    ),
    Function(
        "trim",
        "Texts",
        ("trim(text)",),
        "Without white space at both ends.",
        ("text",),
        "text",
        ((r"trim(' a b\n')", '"a b"'),),
    ),
    Function(
        "lower",
        "Texts",
        ("lower(text)",),
        "In small letters.",
        ("text",),
        "text",
        (("lower('Ada É')", '"ada é"'),),
    ),
    Function(
        "upper",
        "Texts",
        ("upper(text)",),
        "In capital letters. The result may be longer.",
        ("text",),
        "text",
        (("upper('straße')", '"STRASSE"'),),
    ),
    Function(
        "replace",
        "Texts",
        ("replace(text, old, new)",),
        "With every `old` replaced by `new`. Both are plain texts, not patterns.",
        ("text",),
        "text",
        (("replace('a-b-c', '-', ' ')", '"a b c"'),),
        least=3,
        most=3,
    ),
    Function(
        "contains",
        "Texts",
        ("contains(text, part)", "contains(list, value)", "contains(map, key)"),
        "True if a text contains a part, a list an equal element, a map a key.",
        ("text or list or map", _ANY),
        "boolean",
        (("contains(ctx.name, 'd')", "true"), ("contains(ctx.tags, 'c')", "false"), ("contains(ctx, 'n')", "true")),
        least=2,
        most=2,
    ),
    Function(
        "starts_with",
        "Texts",
        ("starts_with(text, beginning)",),
        "True if a text begins with another.",
        ("text",),
        "boolean",
        (("starts_with(ctx.name, 'A')", "true"),),
        least=2,
        most=2,
    ),
    Function(
        "ends_with",
        "Texts",
        ("ends_with(text, end)",),
        "True if a text ends with another.",
        ("text",),
        "boolean",
        (("ends_with('notes.md', '.md')", "true"),),
        least=2,
        most=2,
    ),
    Function(
        "slice",
        "Lists",
        ("slice(list or text, from, to)", "slice(list or text, from)"),
        "The elements or characters from one position, counted from 0, up to another, which is left out. Negative "
        "positions count from the end.",
        ("list or text", "number"),
        "same",
        (("slice([1, 2, 3, 4], 1, 3)", "[2, 3]"), ("slice('abcd', -2)", '"cd"'), ("slice(pipe, 0, 9)", "[3, 4]")),
        least=2,
        most=3,
    ),
    Function(
        "first",
        "Lists",
        ("first(list)",),
        "The first element; null if the list is empty.",
        ("list",),
        _ANY,
        (("first(ctx.tags)", '"a"'), ("first([])", "null"), ("first(slice(pipe, 1))", "4")),
    ),
    Function(
        "last",
        "Lists",
        ("last(list)",),
        "The last element; null if the list is empty.",
        ("list",),
        _ANY,
        (("last(ctx.tags)", '"b"'),),
    ),
    Function(
        "sort",
        "Lists",
        ("sort(list)", "sort(list, item -> key)"),
        "In ascending order, of the elements or of a key of each: all numbers, or all texts, by their code points. "
        "Equal ones keep their order.",
        ("list",),
        "list",
        (
            ("sort([3, 1, 2])", "[1, 2, 3]"),
            ("sort(['b', 'a', 'B'])", '["B", "a", "b"]'),
            ("map(sort(ctx.rows, r -> -r.n), r -> r.id)", '["y", "x"]'),
        ),
        key="may",
    ),
    Function(
        "reverse",
        "Lists",
        ("reverse(list)",),
        "In the opposite order.",
        ("list",),
        "list",
        (("reverse(pipe)", "[4, 3]"),),
    ),
    Function(
        "distinct",
        "Lists",
        ("distinct(list)", "distinct(list, item -> key)"),
        "Without elements that are equal to an earlier one, or have an equal key.",
        ("list",),
        "list",
        (("distinct([1, 2, 1])", "[1, 2]"), ("distinct(['a', 'A'], t -> lower(t))", '["a"]')),
        key="may",
    ),
    Function(
        "group",
        "Lists",
        ("group(list, item -> key)",),
        "A list of `{key, items}`: the elements that have equal keys, in the order in which the keys first appear.",
        ("list",),
        "list",
        (
            (
                "group([1, 2, 3], n -> n > 1)",
                '[{"key": false, "items": [1]}, {"key": true, "items": [2, 3]}]',
            ),
            ("map(group(['a', 'b', 'a'], t -> t), g -> count(g.items))", "[2, 1]"),
        ),
        key="must",
    ),
    Function(
        "flatten",
        "Lists",
        ("flatten(list)",),
        "With the elements of inner lists in their place, one level deep.",
        ("list",),
        "list",
        (("flatten([[1, 2], 3, [[4]]])", "[1, 2, 3, [4]]"),),
    ),
    Function(
        "zip",
        "Lists",
        ("zip(list, list, …)", "zip(map of lists)"),
        "A list of the first elements, one of the second ones, and so on, as long as the shortest list. From a map of "
        "lists it makes maps.",
        ("list",),
        "list",
        (
            ("zip(ctx.tags, pipe)", '[["a", 3], ["b", 4]]'),
            ("zip({tag: ctx.tags, n: pipe})", '[{"tag": "a", "n": 3}, {"tag": "b", "n": 4}]'),
        ),
        most=None,
        alone="map",
    ),
    Function(
        "range",
        "Lists",
        ("range(count)", "range(from, to)"),
        "The whole numbers from 0, or from a number, up to another, which is left out.",
        ("number",),
        "list",
        (("range(3)", "[0, 1, 2]"), ("range(2, 5)", "[2, 3, 4]"), ("range(0)", "[]")),
        most=2,
    ),
    Function(
        "keys",
        "Maps",
        ("keys(map)",),
        "The keys in their order.",
        ("map",),
        "list",
        (("keys(ctx.review)", '["passed", "notes"]'),),
    ),
    Function(
        "values",
        "Maps",
        ("values(map)",),
        "The values in the order of the keys.",
        ("map",),
        "list",
        (("values(ctx.review)", "[true, null]"),),
    ),
    Function(
        "entries",
        "Maps",
        ("entries(map)",),
        "A list of `{key, value}`.",
        ("map",),
        "list",
        (("entries({a: 1})", '[{"key": "a", "value": 1}]'),),
    ),
    Function(
        "merge",
        "Maps",
        ("merge(map, map, …)", "merge(list of maps)"),
        "One map with the keys of all; the last value of a key counts. Inner maps are not merged.",
        ("map",),
        "map",
        (("merge({a: 1, b: 2}, {b: 3})", '{"a": 1, "b": 3}'), ("merge([{a: 1}, {b: 2}])", '{"a": 1, "b": 2}')),
        most=None,
        alone="map or list",
    ),
    Function(
        "min",
        "Numbers",
        ("min(list)", "min(list, item -> key)", "min(value, value, …)"),
        "The smallest of several numbers or texts, or the first element with the smallest key; null for an empty list.",
        ("number or text",),
        _ANY,
        (("min(pipe)", "3"), ("min(ctx.n, 5)", "5"), ("min(ctx.rows, r -> r.n)", '{"id": "x", "n": 1}')),
        most=None,
        key="may",
        alone="list",
    ),
    Function(
        "max",
        "Numbers",
        ("max(list)", "max(list, item -> key)", "max(value, value, …)"),
        "The largest, in the same way.",
        ("number or text",),
        _ANY,
        (("max(0, ctx.n - 9)", "0"), ("max(ctx.rows, r -> r.n)", '{"id": "y", "n": 5}')),
        most=None,
        key="may",
        alone="list",
    ),
    Function(
        "abs",
        "Numbers",
        ("abs(number)",),
        "Without its sign.",
        ("number",),
        "number",
        (("abs(3 - ctx.n)", "4"),),
    ),
    Function(
        "round",
        "Numbers",
        ("round(number)", "round(number, decimals)"),
        "The nearest number with N decimals (-15 to 15); without N, the nearest whole number. Halves go away "
        "from zero.",
        ("number",),
        "number",
        (("round(2.5)", "3"), ("round(-2.5)", "-3"), ("round(2.675, 2)", "2.68"), ("round(1234, -2)", "1200")),
        most=2,
    ),
    Function(
        "floor",
        "Numbers",
        ("floor(number)",),
        "The next whole number below.",
        ("number",),
        "number",
        (("floor(-1.5)", "-2"),),
    ),
    Function(
        "ceil",
        "Numbers",
        ("ceil(number)",),
        "The next whole number above.",
        ("number",),
        "number",
        (("ceil(ctx.n / 2)", "4"),),
    ),
)
FUNCTIONS = {function.name: function for function in _FUNCTIONS}

_MEANT = {
    "count": ("len", "length", "size"),
    "text": ("str", "string", "to_string", "tostring"),
    "number": ("int", "float", "to_number", "parse_int", "parse_float"),
    "json": ("to_json", "tojson", "stringify", "dumps"),
    "parse": ("from_json", "fromjson", "parse_json", "loads"),
    "trim": ("strip",),
    "lower": ("lowercase", "to_lower", "downcase"),
    "upper": ("uppercase", "to_upper", "upcase"),
    "contains": ("includes", "has"),
    "first": ("head",),
    "slice": ("substring", "substr", "take", "limit"),
    "sort": ("sorted", "sort_by", "order_by"),
    "reverse": ("reversed",),
    "distinct": ("unique", "uniq", "set", "dedupe"),
    "entries": ("items",),
    "group": ("group_by", "groupby"),
    "flatten": ("flat", "concat"),
    "ceil": ("ceiling",),
}


def meant(name: str, other: tuple[str, ...]) -> str | None:
    """Return the function that a name which is not one stands for: in other languages, or misspelled.

    `other` are functions beside those of the table.
    """
    own_name = next((own for own, names in _MEANT.items() if name.lower() in names), None)
    return own_name or nearest(name, (*FUNCTIONS, *other))
