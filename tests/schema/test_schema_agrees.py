"""Our validator against one that knows nothing of ours, on the translation."""

from __future__ import annotations

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple
from quire.values import Value

NAMES = st.sampled_from(["a", "b", "c-d", "_e"])
# Beyond 2**53 the other side compares some numbers as floats; ours are exact.
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.sampled_from([0, 1, 1.0, -0.0, 2])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "x", "low", "1", "é"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=4,
)
BOUNDS = st.none() | st.integers(-3, 3) | st.floats(-3, 3, allow_subnormal=False)
ANCHORED = ["^x", "x$", "^[a-z]*$", r"^\d+$", r"^\S*$", r"^\w+$", "^.$", "^(?:lo|hi)+$", r"^\D{2,3}$", r"^\p{L}*$"]
PATTERNS = st.sampled_from([*ANCHORED, "", r"\s", r"[\s\-é]", r"^[^\d]*$", r"\W", "(", r"\b"])
SIMPLE = (
    st.sampled_from(Kind).map(Simple)
    | st.builds(Simple, st.just(Kind.NUMBER), BOUNDS, BOUNDS)
    | st.builds(Simple, st.just(Kind.STRING), max_length=st.none() | st.integers(1, 3), pattern=st.none() | PATTERNS)
)
ENUMS = st.lists(VALUES, min_size=1, max_size=4).map(lambda values: Enum(tuple(values)))
TEXTS = st.text(max_size=3) | st.text(st.sampled_from("xlohi1é \t\v\n\r\u2028\u00a0-_💥"), max_size=4)
REFS = st.sampled_from(["A", "B", "Undefined"]).map(Ref)


def fields_of(types: st.SearchStrategy[FieldType]) -> st.SearchStrategy[tuple[Field, ...]]:
    field = st.builds(Field, NAMES, types, st.booleans())
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda one: one.name).map(tuple)


LEAVES: st.SearchStrategy[FieldType] = SIMPLE | ENUMS | REFS


def larger(inner: st.SearchStrategy[FieldType]) -> st.SearchStrategy[FieldType]:
    objects = fields_of(inner).map(Object)
    return st.builds(ListOf, LEAVES | objects, st.none() | st.integers(1, 2)) | objects


TYPES: st.SearchStrategy[FieldType] = st.recursive(LEAVES, larger, max_leaves=4)
FIELDS = fields_of(TYPES)


@st.composite
def near(draw: st.DrawFn, type: FieldType, known: dict[str, Schema], depth: int = 0) -> Value:
    """Mostly a value that conforms, so that both answers are common."""
    if depth > 2 or draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if isinstance(type, Enum):
        return draw(st.sampled_from(type.values))
    if isinstance(type, ListOf):
        return [draw(near(type.of, known, depth + 1)) for _ in range(draw(st.integers(0, 3)))]
    if isinstance(type, Ref):
        return draw(near(Object(known[type.schema].fields), known, depth)) if type.schema in known else {}
    if isinstance(type, Object):
        kept = [one for one in type.fields if one.required or draw(st.booleans())]
        return {one.name: draw(near(one.type, known, depth + 1)) for one in kept}
    fitting: dict[Kind, st.SearchStrategy[Value]]
    fitting = {Kind.BOOL: st.booleans(), Kind.STRING: TEXTS, Kind.NUMBER: NUMBERS}
    return draw(fitting[type.kind])


@settings(max_examples=depth(40, 400), deadline=None)
@given(data=st.data(), root=FIELDS, a=FIELDS, b=FIELDS)
def test_both_agree(data: st.DataObject, root: tuple[Field, ...], a: tuple[Field, ...], b: tuple[Field, ...]) -> None:
    schema, known = Schema("Root", root), {"A": Schema("A", a), "B": Schema("B", b)}
    value = data.draw(near(Object(root), known))
    validator = jsonschema_rs.validator_for(schema.json_schema(known.get))
    violations = schema.violations(value, known.get)
    assert validator.is_valid(value) == (not violations), [str(one) for one in violations]


def test_both_answers_are_common() -> None:
    """Guards the test above: a generator that makes only one kind of value would prove nothing."""
    answers: list[bool] = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(data=st.data(), root=FIELDS)
    def collect(data: st.DataObject, root: tuple[Field, ...]) -> None:
        answers.append(not Schema("Root", root).violations(data.draw(near(Object(root), {})), lambda name: None))

    collect()
    assert 10 < sum(answers) < len(answers) - 10
