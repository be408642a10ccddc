"""Facts of one step of a pipeline that hold whatever stands around it, for the checks.

Facts are found once for each text of a step. Numbers and spans count from the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from quire.formats.pipeline.check_stores import inner_outputs, is_unbound
from quire.formats.pipeline.inputs import UseWalk, survives
from quire.formats.pipeline.prompts import foreign
from quire.formats.pipeline.syntax import HOLE, AgentBody, Step, ToolBody
from quire.formats.pipeline.walks import parts, schema_of, targets

if TYPE_CHECKING:
    from quire.formats.pipeline.inputs import Use, Written

_NONE: frozenset[str] = frozenset()
Trait: TypeAlias = Literal["goes on", "calls", "hole", "any store", "headers", "foreign reference", "prompt file"]
"""A property of a step that it has because of itself or of a step inside of it: that goes on after a failure; may call
another document; could not be read; may therefore write any store; gives a tool an argument `headers`; has a prompt
with a reference as another format writes it; has a prompt in a file."""
_TRAITS: dict[frozenset[Trait], frozenset[Trait]] = {}
"""One object for all steps with the same traits."""


class StepFacts(Struct, frozen=True):
    """The facts of a step and of those inside of it."""

    numbers: int
    """How many numbers it takes to count where steps begin and end."""
    reads: frozenset[str]
    """The stores that it reads in a way that fails without them."""
    all_reads: frozenset[str]
    """All stores that it reads."""
    types: tuple[str, ...]
    """The stores whose types it reads or changes."""
    kept: tuple[str, ...]
    """The stores whose types are changed for the steps after it."""
    is_unbound: bool
    """True if it reads `item` or `acc` where there is none."""
    writes: tuple[tuple[str, Written], ...]
    certain: tuple[tuple[str, int], ...]
    """The stores that are certainly written when it has ended, with the number at which each is there."""
    inner: frozenset[str]
    """The outputs of the steps inside of it."""
    schemas: frozenset[str]
    tools: frozenset[str]
    """The names of the tools of `tool` steps."""
    traits: frozenset[Trait]
    has_uses: bool
    """True if it reads anything."""
    reads_context: bool
    """True if it reads `ctx` as a whole. The last place is judged with the step after it."""
    ends_with_context: bool
    begins_with_get: bool


def with_parts(step: Step) -> Iterator[Step]:
    """Yield a step and all steps inside of it, parents first."""
    yield step
    for _, part in parts(step):
        yield from with_parts(part)


def facts_of(step: Step, common: frozenset[str]) -> StepFacts:
    """Return the facts of a step in a pipeline whose steps can all read the names in `common`."""
    walk = UseWalk(common)
    walk.count(step, "")
    uses = [*walk.scope((step,), common, {}, {})]
    steps = [*with_parts(step)]
    stores = frozenset(name for use in uses if (name := use.store) is not None) or _NONE
    needed = frozenset(name for use in uses if not use.optional and (name := use.store) is not None) or _NONE
    outputs = {one.output.text for one in steps if one.output}
    writes = tuple(walk.writes(step))
    return StepFacts(
        numbers=walk.number,
        # Sets are large, and mostly both are the same.
        reads=stores if needed == stores else needed,
        all_reads=stores,
        types=tuple(sorted(stores | outputs)),
        kept=tuple(dict.fromkeys(name for name, _ in writes)),
        is_unbound=any(map(is_unbound, uses)),
        writes=writes,
        certain=tuple(walk.certain(step)),
        inner=frozenset(inner_outputs(step)) or _NONE,
        schemas=frozenset(schema.text for one in steps if (schema := schema_of(one))) or _NONE,
        tools=frozenset(one.body.name.text for one in steps if isinstance(one.body, ToolBody)) or _NONE,
        traits=_traits(step, steps),
        has_uses=bool(uses),
        reads_context=any(_is_whole(use, then) for use, then in pairwise(uses)),
        ends_with_context=bool(uses) and uses[-1].path == ("ctx",),
        begins_with_get=bool(uses) and _is_get(uses[0]),
    )


def _traits(step: Step, steps: list[Step]) -> frozenset[Trait]:
    prompts = [one.body for one in steps if isinstance(one.body, AgentBody)]
    texts = [one.prompt.text for one in prompts]
    arguments = [name.text for one in steps if isinstance(one.body, ToolBody) for name, _ in one.body.args]
    has: dict[Trait, bool] = {
        "goes on": survives(step),
        "calls": any(targets(one) for one in steps),
        "hole": any(one.body is HOLE for one in steps),
        "any store": any(one.body is HOLE and one.output is None for one in steps),
        "headers": "headers" in arguments,
        "foreign reference": any(True for text in texts for _ in foreign(text)),
        "prompt file": any(one.is_file for one in prompts),
    }
    found = frozenset(trait for trait, is_there in has.items() if is_there)
    return _TRAITS.setdefault(found, found)


def traits_of(facts: Iterable[StepFacts]) -> frozenset[Trait]:
    """Return the traits that any of some steps has."""
    return frozenset().union(*{one.traits for one in facts})


def read_as_a_whole(facts: Iterable[StepFacts]) -> bool:
    """Tell whether a step reads `ctx` as a whole, so that it may read any input."""
    reading = [one for one in facts if one.has_uses]
    return any(
        one.reads_context or (one.ends_with_context and not (then is not None and then.begins_with_get))
        for one, then in zip_longest(reading, reading[1:])
    )


def _is_whole(use: Use, then: Use) -> bool:
    return use.path == ("ctx",) and not _is_get(then)


def _is_get(use: Use) -> bool:
    return use.optional and use.path[0] == "ctx"
