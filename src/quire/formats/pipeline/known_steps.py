"""Facts and findings of steps that were checked before, for as long as they hold.

`incremental_check` has the rule by which they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.pipeline.inputs import Written, common_bindings

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.pipeline.incremental import CutSteps, Piece
    from quire.formats.pipeline.inputs import Use
    from quire.formats.pipeline.step_facts import StepFacts, Trait
    from quire.formats.pipeline.syntax import Pipeline
    from quire.schema import FieldType

ALONE = ("schema", "tools", "identity", "arguments", "python", "items", "outputs", "texts")
"""The checks that depend on a step and its surroundings alone, in their order."""
MOST_KINDS = 8
"""Most states of the stores for which findings about one text are kept."""


class Found(Struct, frozen=True):
    """The findings of one check of one step."""

    diagnostics: tuple[Diagnostic, ...]
    """With the spans of the step."""
    placing: int
    """In how many characters their places were looked for."""
    asked: tuple[int, ...] = ()
    """The suggestions that were asked for, as `Suggestions.asked` has them."""


NOTHING = Found((), 0)


_NO_FINDINGS: dict[str, Found] = {}
"""In place of the findings of steps for which none is kept."""


class FoundTypes(Struct, frozen=True):
    """The findings and the types of one step."""

    found: Found
    before: tuple[object, ...]
    """The types that the step began with."""
    result: FieldType | None
    after: tuple[FieldType | None, ...]
    """The types of the stores that it changes for the steps after it."""


class KnownStep:
    """Facts and findings of one text of a step, in the surroundings of its pipeline."""

    __slots__ = ("alone", "facts", "is_settled", "piece", "reading", "stores", "types")

    def __init__(self, piece: Piece, facts: StepFacts) -> None:
        self.piece = piece
        self.facts = facts
        self.alone: dict[str, Found] = {}
        """By the name of the check; without an entry for one that has to be made again."""
        self.is_settled = False
        """True if none of these checks has anything to report."""
        self.stores: dict[tuple[object, ...], Found] | None = None
        """By the states of the stores; None as long as there is nothing to keep, as for most steps."""
        self.reading: tuple[Use, ...] | None = None
        """The places that read a store and fail without it, once they were asked for. Numbers count from the step."""
        self.types: list[FoundTypes] = []
        """For the last types before the step."""

    def writes_at(self, label: int, begins: int) -> Iterator[tuple[str, Written]]:
        """Yield the stores that the step writes at a place of its pipeline."""
        for name, one in self.facts.writes:
            yield name, Written(begins + one.begins, begins + one.ends, f"{label}{one.label}", one.when)

    def settle(self) -> None:
        """Note that all checks of the step alone were made, if they were and none has to be made again."""
        if len(self.alone) == len(ALONE) and not any(one.diagnostics for one in self.alone.values()):
            self.is_settled, self.alone = True, _NO_FINDINGS


class TypeFlow(Struct, frozen=True):
    """The types on the way through the steps of a pipeline, when they were last checked in their order."""

    known: list[KnownStep] = []
    found: list[FoundTypes | None] = []
    """None for a step that has to be looked at again."""
    open: list[int] = []
    """The numbers of these steps."""


class StoreFlow(Struct, frozen=True):
    """The stores that the steps of a pipeline write, and what was found about those that they read, when they were last
    checked in their order."""

    known: list[KnownStep] = []
    found: list[Found | None] = []
    """None for a step that has to be looked at again."""
    silent: int = 0
    """From this step on, nothing was said about names that no step writes, because no suggestion was left."""
    begins: list[int] = []
    """The number at which each step begins."""
    first: dict[str, Written] = {}
    """Where each store is first written."""
    inner: frozenset[str] = frozenset()
    """The stores that are written inside of other steps."""
    any_store: bool = False
    """True if a step may write any store, because it could not be read."""


class KnownPipeline:
    """The steps of one pipeline, by the identity of their pieces, and the surroundings in which all of it holds."""

    __slots__ = ("around", "flow", "steps", "stores", "survives", "traits")

    def __init__(self, around: tuple[object, ...], survives: bool) -> None:
        self.around = around
        self.flow = TypeFlow()
        self.stores = StoreFlow()
        self.survives = survives
        """Whether a step goes on after a failure: then all steps can read `errors`."""
        self.steps: dict[int, KnownStep] = {}
        self.traits: frozenset[Trait] = frozenset()
        """The traits that any of the steps has."""


class PlacedSteps:
    """The steps of one pipeline at their places, with what is known of them."""

    __slots__ = ("common", "cut", "facts", "known", "memory", "pipeline", "traits", "unsettled")

    def __init__(self, pipeline: Pipeline, cut: CutSteps, known: KnownPipeline) -> None:
        self.pipeline = pipeline
        self.memory = known
        self.cut = cut
        self.known = [known.steps[id(piece)] for piece in cut.pieces]
        self.facts = [one.facts for one in self.known]
        self.common = common_bindings(known.survives)
        self.traits = known.traits
        self.unsettled = [at for at, one in enumerate(self.known) if not one.is_settled]
        """The steps for which a check of steps alone has something to do."""
