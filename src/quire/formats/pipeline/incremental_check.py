"""Check a pipeline file again after a change, and look again only at the steps that the change can concern.

`IncrementalCheck` keeps what it has found about each step of a list `steps`: its facts, and the findings about it. Its
findings are those of `check_reading`, without those of `check_plans`, which need the whole plan.

The rule by which something that is kept still holds:

- Facts, and findings that depend on the step alone, hold as long as its text and its surroundings are the same. The
  surroundings are everything else that such a check reads: the schemas, the declared inputs, the names of the
  workspace. When they change, everything that was kept is dropped.
- Findings about stores hold for the same states of the stores that the step reads: written before, perhaps written,
  written later, never. As long as a change leaves the writers of all stores as they are, other steps are not even
  asked.
- Findings about types hold for the same types of the stores that the step reads or writes, and of the pipe. The types
  that the step leaves behind are kept with them. Steps before and behind a change are not even asked, as long as it
  leaves the same types behind.
- A reading has a limited number of suggestions. A check that asked for one is kept only if it was about stores that no
  step writes, and while as many are left. The check of a step that calls another document, which may have changed, is
  never kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.formats.pipeline.check import declared_inputs, result_types
from quire.formats.pipeline.check_calls import CallChecker, finder
from quire.formats.pipeline.check_limits import check_item_list
from quire.formats.pipeline.check_references import (
    check_identity,
    check_python_tool,
    check_schema_name,
    check_step_arguments,
    check_step_texts,
    check_step_tools,
    check_unused_schemas,
    tool_names,
)
from quire.formats.pipeline.check_stores import check_outputs
from quire.formats.pipeline.check_types import TypeWalker
from quire.formats.pipeline.fields import MAX_PLACING, Fields
from quire.formats.pipeline.incremental import IncrementalReader
from quire.formats.pipeline.incremental_stores import IncrementalStores
from quire.formats.pipeline.incremental_types import IncrementalTypes
from quire.formats.pipeline.inputs import common_bindings
from quire.formats.pipeline.known_steps import (
    ALONE,
    NOTHING,
    Found,
    KnownPipeline,
    KnownStep,
    PlacedSteps,
)
from quire.formats.pipeline.known_types import Shapes
from quire.formats.pipeline.shifted import shifted_finding, shifted_step
from quire.formats.pipeline.step_facts import facts_of, traits_of, with_parts
from quire.formats.pipeline.walks import schema_of
from quire.source import Source

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.pipeline.incremental import CutReading, CutSteps
    from quire.formats.pipeline.syntax import Pipeline, PipelineFile, Step
    from quire.formats.resolver import DocumentResolver
    from quire.schema import Field, FieldType
    from quire.source import Span

_MOST_TYPES = 4_000


class IncrementalCheck:
    """The checks of the versions of one text after each other."""

    def __init__(self) -> None:
        self._reader = IncrementalReader()
        self._pipelines: dict[int, KnownPipeline] = {}
        """By the number of the pipeline in the file."""
        self._types: dict[str, FieldType] = {}
        """One object for each type, so that types are compared by their identity."""

    def cut(self, source: Source, *, registered: bool) -> CutReading | None:
        """Read a text for `findings`; None if it has to be read as a whole."""
        return self._reader.cut(source, registered=registered)

    def findings(self, cut: CutReading, resolver: DocumentResolver) -> tuple[Diagnostic, ...] | None:
        """Return the findings about a text; None if it has to be checked as a whole."""
        reading = cut.result
        file = reading.file or reading.partial
        if file is None:
            return reading.diagnostics
        if len(self._types) > _MOST_TYPES:
            self._types.clear()
        one = _OneCheck(cut, file, resolver, self._types)
        before, self._pipelines = self._pipelines, {}
        for number, pipeline in enumerate(file.pipelines):
            self._pipelines[number] = one.known(number, pipeline, before.get(number))
        if not one.can_be_cut or not one.check():
            return None
        known = {found.span.start for found in reading.diagnostics}
        new = dict.fromkeys(one.fields.diagnostics)
        fresh = [found for found in new if reading.file or found.span.start not in known]
        return tuple(sorted([*reading.diagnostics, *fresh], key=attrgetter("span.start", "span.end")))

    def steps_with_headers(self, cut: CutReading) -> Iterator[Step]:
        """Yield the steps of the text that was checked last which give a tool headers, at their places,
        with those inside of them."""
        for number, one in enumerate(cut.pipelines):
            known = self._pipelines[number].steps
            if "headers" not in self._pipelines[number].traits:
                continue
            for step, piece, start in zip(one.steps, one.pieces, one.part.items, strict=True):
                if "headers" in known[id(piece)].facts.traits:
                    yield from with_parts(shifted_step(step, start))


class _OneCheck:
    """One check of one text."""

    def __init__(
        self, cut: CutReading, file: PipelineFile, resolver: DocumentResolver, types: dict[str, FieldType]
    ) -> None:
        self.file = file
        self.resolver = resolver
        self.fields = Fields(cut.result.source)
        self.defined = [schema.name for schema in file.schemas]
        tools, identities = resolver.tools(), resolver.identities()
        self.tools = None if tools is None else tool_names(tools)
        self.identities = None if identities is None else frozenset(identities)
        self._cut = cut
        self._types = types
        schemas = repr([(one.name, one.fields) for one in file.schemas])
        self._around = schemas, file.unread, self.tools, self.identities
        self._placed: list[PlacedSteps] = []

    # What is known

    def known(self, number: int, pipeline: Pipeline, before: KnownPipeline | None) -> KnownPipeline:
        """Return what is known of the steps of a pipeline that are still there, and find the facts of the others."""
        cut = self._cut.pipelines[number]
        survives = before is not None and before.survives
        known = self._with_facts(pipeline, cut, before, survives)
        if ("goes on" in known.traits) is not survives:
            known = self._with_facts(pipeline, cut, before, not survives)
        self._placed.append(PlacedSteps(pipeline, cut, known))
        return known

    def _with_facts(
        self, pipeline: Pipeline, cut: CutSteps, before: KnownPipeline | None, survives: bool
    ) -> KnownPipeline:
        tools = frozenset().union(*{one.facts.tools for one in before.steps.values()}) if before else frozenset[str]()
        problems = tuple((name, found) for name in sorted(tools) if (found := self.resolver.python_problem(name)))
        inputs = repr(pipeline.input), tuple(one.text for one in pipeline.input_names)
        known = KnownPipeline((*self._around, inputs, problems, survives), survives)
        kept: dict[int, KnownStep] = {}
        if before is not None and before.around == known.around:
            kept, known.flow, known.stores = before.steps, before.flow, before.stores
        for piece, step in zip(cut.pieces, cut.steps, strict=True):
            if id(piece) not in known.steps:
                one = kept.get(id(piece)) or KnownStep(piece, facts_of(step, common_bindings(survives)))
                known.steps[id(piece)] = one
        known.traits = traits_of(one.facts for one in known.steps.values())
        return known

    @property
    def can_be_cut(self) -> bool:
        """False if a step is judged by all names of its pipeline: then they would have to be collected each time."""
        return not any("foreign reference" in placed.traits for placed in self._placed)

    # Checks, in the order of `check_reading`: suggestions are limited, so the order counts

    def check(self) -> bool:
        """Make all checks. Return False if the text is so full of mistakes that a whole check would report less."""
        for name in ALONE[:-2]:
            if name != "items" or self._cut.result.file is not None:
                for placed in self._placed:
                    self._check_alone(name, placed)
            if name == "schema" and self.file.schemas:
                self._check_unused_schemas()
        file = self._with_placed_calls()
        find = finder(file, self.resolver)
        calls = CallChecker(find, self.fields, self.resolver, unread=self.file.unread)
        shapes = Shapes({schema.name: schema for schema in self.file.schemas})
        for placed, pipeline in zip(self._placed, file.pipelines, strict=True):
            takes: Mapping[str, Mapping[str, Field]] = {}
            gives: Mapping[str, FieldType] = {}
            if "calls" in placed.traits:
                calls.check(pipeline)
                takes, gives = declared_inputs(pipeline, find), result_types(pipeline, find, self.resolver)
            stores = IncrementalStores(placed, self)
            stores.check()
            self._check_alone("outputs", placed)
            self._check_alone("texts", placed)
            if placed.pipeline.input is not None:
                stores.check_inputs()
            walker = TypeWalker(shapes, self.fields, gives, takes, self.resolver)
            IncrementalTypes(placed, self, self._types).check(walker)
            for at in placed.unsettled:
                placed.known[at].settle()
        return self.fields.placing <= MAX_PLACING

    def _check_unused_schemas(self) -> None:
        facts = [one for placed in self._placed for one in placed.facts]
        if not any("hole" in one.traits for one in self._placed):
            check_unused_schemas(self.file, {name for one in facts for name in one.schemas}, self.fields)

    def _with_placed_calls(self) -> PipelineFile:
        """Return the file with the steps that call other documents at their places."""
        if not any("calls" in one.traits for one in self._placed):
            return self.file
        pipelines = []
        for placed in self._placed:
            of_all = zip(placed.cut.steps, placed.cut.part.items, placed.facts, strict=True)
            steps = tuple(shifted_step(step, start) if "calls" in one.traits else step for step, start, one in of_all)
            pipelines.append(replace(placed.pipeline, steps=steps))
        return replace(self.file, pipelines=tuple(pipelines))

    def _check_alone(self, name: str, placed: PlacedSteps) -> None:
        """Make a check that depends on the step alone."""
        for at in placed.unsettled:
            one = placed.known[at]
            if name in one.alone:
                self.replay(one.alone[name], placed.cut.part.span(at))
                continue
            found, is_kept = self.run(partial(self._alone, name, placed.cut.steps[at]), placed.cut.part.span(at))
            if is_kept:
                one.alone[name] = found

    def _alone(self, name: str, top: Step) -> None:
        if name == "outputs":
            check_outputs(top, self.fields)
            return
        for step in with_parts(top):
            match name:
                case "schema":
                    if schema := schema_of(step):
                        check_schema_name(schema, self.defined, self.file.unread, self.fields)
                case "tools":
                    if self.tools is not None:
                        check_step_tools(step, self.tools, self.fields)
                case "identity":
                    if self.identities is not None:
                        check_identity(step, self.identities, self.fields)
                case "arguments":
                    check_step_arguments(step, self.resolver, self.fields)
                case "python":
                    check_python_tool(step, self.resolver, self.fields)
                case "items":
                    check_item_list(step, self.fields)
                case "texts":
                    check_step_texts(step, (), self.fields)

    def run(self, check: Callable[[], object], at: Span) -> tuple[Found, bool]:
        """Make a check of one step in its own text, and report its findings at their place. Return them, and whether
        they may be kept."""
        fields, before = self.fields, self.fields.diagnostics
        source, asked, placing = fields.source, len(fields.suggestions.asked), fields.placing
        fields.source, fields.diagnostics = Source("", source.text[at.start : at.end]), []
        try:
            check()
            said = tuple(fields.suggestions.asked[asked:])
            has_any = fields.diagnostics or said
            found = Found(tuple(fields.diagnostics), fields.placing - placing, said) if has_any else NOTHING
        finally:
            fields.source, fields.diagnostics = source, before
        before += [shifted_finding(one, at.start) for one in found.diagnostics]
        return found, not found.asked

    def replay(self, found: Found, at: Span) -> None:
        """Report findings that were kept."""
        if found.diagnostics:
            self.fields.diagnostics += [shifted_finding(one, at.start) for one in found.diagnostics]
            self.fields.placing += found.placing
