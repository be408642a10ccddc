"""Record cassettes: run cases on a real model, and keep its replies if their expectations hold."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart
from quire.testing.case_rows import CaseRow, expand
from quire.testing.case_run import START
from quire.testing.cassettes.cassette import CassetteFile, RecordedCall, call_hash, request_text
from quire.testing.discovery import EVERYTHING, Selection, open_document
from quire.testing.expectations import Judging, judge
from quire.testing.live.plan import open_models, read_test, user_models
from quire.testing.live.schedule import Meter, Metered, Purse, require_price
from quire.testing.live.trial import LiveModel, LiveRun
from quire.testing.world.model import CaseModel, ModelAsked
from quire.testing.world.model import Meter as EffectMeter

if TYPE_CHECKING:
    from quire.engine.ports import Model, ModelCall, ModelReply
    from quire.formats.test.syntax import Case
    from quire.testing.case_run import Bench
    from quire.testing.discovery import TestTarget
    from quire.testing.observation import SeenPrompt
    from quire.trust.secrets import Redactor
    from quire.values import Value

Which = Literal["missing", "all"]


class RecordOptions(Struct, frozen=True):
    """The options of a recording, as the command line gives them."""

    targets: tuple[TestTarget, ...]
    selection: Selection = EVERYTHING
    which: Which = "missing"
    model: str = ""
    """The name of a model or a tier; empty for the model that `quire run` would use."""
    budget: float | None = None


class RecordedCase(Struct, frozen=True):
    """The end of one case of a recording."""

    file: str
    case: str
    calls: int = 0
    problems: tuple[str, ...] = ()
    """Why it was not kept; empty if it was."""


class Recording(Struct, frozen=True):
    """A recording that is ready: the cases, the model, and the redactor of the user's secrets."""

    cases: tuple[WantedCase, ...]
    spec: str
    model: Model
    redactor: Redactor
    budget: float | None = None


class WantedCase(Struct, frozen=True):
    """A case, or a row of it, that is going to be recorded."""

    path: str
    row: CaseRow
    bench: Bench
    file: CassetteFile


def plan_recording(options: RecordOptions, environ: Mapping[str, str] = os.environ) -> Recording:
    """Find the cases and open the model. Nothing is asked yet. Raises `CannotStart`, also if it has nothing to do."""
    cases: list[WantedCase] = []
    for target in options.targets:
        cases += _wanted(target, options)
    if not cases:
        raise CannotStart("nothing to record: no case with `cassette: true` lacks a recording")
    folder = cases[0].bench.settings.workspace.folder
    models = user_models(folder, environ)
    spec, model = next(iter(open_models(models, (options.model,) if options.model else ()).items()))
    if options.budget is not None:
        require_price(model, spec)
    from quire.runs.workspace_gate import redactor_of

    return Recording(tuple(cases), spec, model, redactor_of(models.settings, environ), options.budget)


def _wanted(target: TestTarget, options: RecordOptions) -> list[WantedCase]:
    source, file = read_test(target.path)
    selection = options.selection.of(target, source, file)
    cases: list[WantedCase] = []
    bench: Bench | None = None
    for case in file.cases:
        which = case.setting.cassette
        if not which or case.skip is not None:
            continue
        bench = bench or open_document(source, file)
        cassette = CassetteFile.beside(target.path, which if isinstance(which, str) else "")
        plan = bench.document.plan
        for row in expand(case, bench.folder, [field.name for field in plan.inputs] if plan else []):
            if selection.wants(case, row.name, target.path) and (
                options.which == "all" or row.name not in cassette.cases
            ):
                cases.append(WantedCase(target.path, row, bench, cassette))
    return cases


def record(recording: Recording, on_case: Callable[[RecordedCase], None] = lambda made: None) -> list[RecordedCase]:
    """Run the cases one after the other, and write each cassette when its case is done."""
    purse = Purse(recording.budget)
    done: list[RecordedCase] = []
    with asyncio.Runner() as runner:
        for case in recording.cases:
            done.append(runner.run(_record_case(case, recording, purse)))
            on_case(done[-1])
            if purse.exhausted:
                break
    return done


async def _record_case(target: WantedCase, recording: Recording, purse: Purse) -> RecordedCase:
    case, meter = target.row.case, Meter()
    # The clock at which it will be played.
    clock = case.setting.clock or datetime.fromtimestamp(START, UTC).isoformat()
    case = replace(case, setting=replace(case.setting, clock=clock))
    run = LiveRun(target.bench, case, recording.model, recording.spec)
    model = RecordingModel(case, Metered(recording.model, purse, meter), recording.spec, recording.redactor)
    run.world.model = model
    stages, problems = await run.go()
    if problems:
        return RecordedCase(target.path, target.row.name, 0, tuple(problems))
    problems = [meter.message] if meter.trouble else []
    row = target.row.row
    for stage in stages:
        expect = stage.expect(case)
        if stage.act is None or expect is not None:
            judged = judge(expect, Judging(stage.observation, case.span, row))
            problems += [problem.finding.message for problem in judged if problem.finding.code.id not in _LEFT]
    problems += [f"{call.tool} was called: {call.reason}" for call in run.world.tools.unscripted]
    if not problems and model.recorded:
        file = CassetteFile.beside(target.path, target.file.path.name)
        file.write({**file.cases, target.row.name: model.recorded})
    return RecordedCase(target.path, target.row.name, len(model.recorded), tuple(problems))


_LEFT = ("TS120", "TS121")
"""Codes that do not keep a recording back: snapshots change with the replies."""


class RecordingModel(LiveModel):
    """A real model that keeps its calls. Replies that the case writes itself come first, and are not recorded."""

    def __init__(self, case: Case, model: Model, spec: str, redactor: Redactor) -> None:
        super().__init__(model, spec, EffectMeter(), case.setting.model)
        self.recorded: list[RecordedCall] = []
        self._redactor = redactor

    async def _reply(self, call: ModelCall, prompt: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        if self.replies.answers(ModelAsked(call.path, call.label, prompt.text)):
            return await CaseModel._reply(self, call, prompt, on_delta)
        reply = await super()._reply(call, prompt, on_delta)
        clean = self._redactor
        uses = tuple((use.name, cast("Mapping[str, Value]", clean.value(dict(use.arguments)))) for use in reply.uses)
        self.recorded.append(
            RecordedCall(
                call.path,
                call.label,
                clean.text(request_text(prompt)),
                call_hash(call),
                clean.text(reply.text),
                self.name,
                datetime.now(UTC).isoformat(timespec="seconds"),
                uses,
                reply.finish_reason if reply.finish_reason not in ("stop", "tool_call") else "",
                reply.usage.input_tokens,
                reply.usage.output_tokens,
                reply.usage.cost,
            )
        )
        return reply
